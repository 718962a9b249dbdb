"""A scenario: the requests and their times, the settings of the cache, and the expected figures.

It is data. `scenario_file.py` reads it from TOML, `simulator.py` runs it, `fork.py` changes it.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

from minicache.core import Namespace, SchedulerConfig
from minicache.core.request import DEFAULT_NAMESPACE
from minicache.sim.errors import BadScenario
from minicache.sim.prompt import OutputOf, Part, Segment, part_length
from minicache.sim.tokens import segment_tokens

Kind = Literal["hash", "radix"]
CACHE_NAMES: dict[Kind, str] = {"hash": "hash chain", "radix": "radix tree"}
KINDS: tuple[Kind, ...] = get_args(Kind)
GROUPS = (
    "Why a prefix?",
    "Sharing",
    "Pressure",
    "Order",
    "Beyond",
)  # what a scenario teaches


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """`num_blocks` counts the null block; `strategy` is the radix cache's eviction order."""

    kind: Kind
    block_size: int
    num_blocks: int
    strategy: str = "lru"

    @property
    def capacity(self) -> int:
        """How many tokens fit."""
        return (self.num_blocks - 1) * self.block_size

    def as_kind(self, kind: Kind) -> "CacheSettings":
        """The same memory for a cache of that kind, with the block size of its engine: 16 or 1. The strategy stays:
        only a radix cache reads it."""
        if kind == self.kind:
            return self
        block_size = 16 if kind == "hash" else 1
        return CacheSettings(kind, block_size, self.capacity // block_size + 1, self.strategy)

    def describe(self) -> str:
        strategy = "" if self.kind == "hash" else f", {self.strategy}"
        return f"{CACHE_NAMES[self.kind]}{strategy}, {self.num_blocks - 1} blocks of {self.block_size}"


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """One request before it arrives.

    It arrives at the first step boundary at or after `at` seconds (counted from the end of `after`, if that names a
    request), or at the beginning of scheduler step `step`. `line` is its line in the file.
    """

    id: str
    prompt: tuple[Part, ...]
    max_tokens: int = 16
    at: float = 0.0
    step: int | None = None
    after: str | None = None
    namespace: Namespace = DEFAULT_NAMESPACE
    priority: int = 0
    prompt_logprobs: int | None = None
    skip_cache_read: bool = False
    stop_tokens: tuple[int, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Expect:
    """Figures that a run must have. Request ids may be patterns (`"user*"`); `totals` are those of the whole run."""

    per_request: dict[str, dict[str, Any]] = field(default_factory=dict)  # figure -> pattern -> value
    totals: dict[str, Any] = field(default_factory=dict)
    hit_rate: dict[str, float] = field(default_factory=dict)  # definition -> per cent


@dataclass(frozen=True)
class Scenario:
    """`caches` and `schedulers` hold the settings of each kind of cache; it is made for the `kinds`."""

    name: str
    title: str
    story: str
    kinds: tuple[Kind, ...]
    caches: dict[Kind, CacheSettings]
    schedulers: dict[Kind, SchedulerConfig]
    requests: tuple[RequestSpec, ...]
    group: str = "Beyond"
    seed: int = 0
    model: str = "qwen2.5-7b"
    device: str = "a100"
    expect: dict[Kind, Expect] = field(default_factory=dict)
    source: str = ""  # the file, for messages

    @cached_property
    def max_tokens(self) -> dict[str, int]:
        return {spec.id: spec.max_tokens for spec in self.requests}

    def segments(self) -> dict[str, list[int]]:
        """The named segments of the prompts: name -> tokens, as many as the longest of that name has."""
        counts: dict[str, int] = {}
        for spec in self.requests:
            for part in spec.prompt:
                if isinstance(part, Segment):
                    counts[part.name] = max(counts.get(part.name, 0), part.count)
        return {name: segment_tokens(self.seed, name, count) for name, count in counts.items()}

    def prompt_length(self, spec: RequestSpec) -> int:
        lengths = self.max_tokens
        return sum(part_length(part, lengths) for part in spec.prompt)

    def blocks_of(self, spec: RequestSpec, block_size: int) -> int:
        """Blocks that a request needs at its longest."""
        return -(-(self.prompt_length(spec) + spec.max_tokens - 1) // block_size)

    def with_request(self, spec: RequestSpec) -> "Scenario":
        """This scenario with one more request, or with `spec` instead of the request of that id."""
        others = tuple(spec if other.id == spec.id else other for other in self.requests)
        return replace(self, requests=others if spec.id in self.max_tokens else (*others, spec))

    def require_fit(self, kind: Kind) -> None:
        """Raises `BadScenario` for a request that could not even run alone."""
        cache = self.caches[kind]
        for spec in self.requests:
            length = self.prompt_length(spec)
            needed = self.blocks_of(spec, cache.block_size)
            if needed > cache.num_blocks - 1:
                raise BadScenario(
                    f"{self.where(spec)}: request {spec.id!r} can never fit: its {length} prompt tokens and "
                    f"max_tokens {spec.max_tokens} need {needed} blocks of {cache.block_size}, and the {kind} cache "
                    f"has {cache.num_blocks - 1} (num_blocks = {cache.num_blocks} counts the null block, which never "
                    f"holds tokens): raise cache.num_blocks, or shorten the prompt"
                )

    def require_order(self) -> None:
        """Raises `BadScenario` for an id that two requests have, for a request that waits for itself or for a request
        that is not before it, and for one that quotes an answer that may not exist yet."""
        specs: dict[str, RequestSpec] = {}
        for spec in self.requests:
            if spec.id in specs:
                raise BadScenario(f"{self.where(spec)}: id: another request has the id {spec.id!r} too")
            if spec.after is not None and spec.after not in specs:
                raise BadScenario(f"{self.where(spec)}: after: {spec.id!r} needs a request {spec.after!r} before it")
            specs[spec.id] = spec
            earlier = self._ancestors(spec, specs)
            for part in spec.prompt:
                if isinstance(part, OutputOf) and part.request not in earlier:
                    raise BadScenario(
                        f"{self.where(spec)}: output_of: {spec.id!r} quotes {part.request!r}, which may not have "
                        f"answered by then: add after = {part.request!r}"
                    )

    def _ancestors(self, spec: RequestSpec, specs: dict[str, RequestSpec]) -> set[str]:
        found = set()
        while spec.after is not None and spec.after not in found:
            found.add(spec.after)
            spec = specs[spec.after]
        return found

    def where(self, spec: RequestSpec) -> str:
        return f"{self.source or self.name}, line {spec.line}" if spec.line else self.source or self.name
