"""Scenario files: TOML in, a checked `Scenario` out. Every complaint names file, line and key.

    title, story, group?, seed?
    [cache]      kind = hash | radix | both, block_size, num_blocks, strategy; [cache.radix] for radix alone
    [scheduler]  profile = vllm | sglang, and any field of `SchedulerConfig`
    [cost]       model, device
    [[request]]  id, prompt, max_tokens; at | step, after; adapter, salt, extra; priority; count, every
    [expect]     the figures that must result; [expect.hash] and [expect.radix] where they differ

A request with `count = 50` is fifty requests, `every` seconds apart; `{n}` in its texts is 1, 2, …
"""

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, cast

from minicache.core import Adapter, Namespace, SchedulerConfig
from minicache.core.errors import MinicacheError
from minicache.core.eviction import STRATEGIES
from minicache.sim.cost_model import DEVICES, MODELS
from minicache.sim.figures import PER_REQUEST, RATES, TOTALS
from minicache.sim.prompt import OutputOf, Part, Segment, Text, Tokens
from minicache.sim.scenario import GROUPS, KINDS, CacheSettings, Expect, Kind, RequestSpec, Scenario
from minicache.sim.toml_table import Document, Path, Table

DEFAULT_TOKENS = 8192  # the size of a pool if the scenario gives none
MAX_TOKENS = 1 << 21  # in a pool: each block costs the simulator a few hundred bytes
MAX_REQUESTS = 20_000  # of a scenario; they take half a minute and a gigabyte
MAX_ANSWERS = 1 << 17  # tokens of all answers together; each is a step or a part of one
PROFILES = ("vllm", "sglang")
SCHEDULER_FIELDS = {item.name: item for item in fields(SchedulerConfig)}


def read_scenario(text: str, name: str, source: str, changes: Mapping[Path, object] | None = None) -> Scenario:
    """The scenario in `text`, with the values that `--set` replaces by `changes`. Raises `BadScenario`."""
    document = Document.parse(text, source)
    for path, value in (changes or {}).items():
        document.override(path, value)
    document.require_plain()
    root = document.root
    title, story = root.text("title"), " ".join(root.text("story").split())
    cache = root.table("cache")
    kind = cache.choice("kind", (*KINDS, "both"), "hash")
    kinds: tuple[Kind, ...] = KINDS if kind == "both" else (cast("Kind", kind),)
    caches = _caches(cache, kinds[0])
    scheduler, cost = root.table("scheduler"), root.table("cost")
    scenario = Scenario(
        name=name,
        title=title,
        story=story,
        kinds=kinds,
        caches=caches,
        schedulers=_schedulers(scheduler),
        requests=tuple(
            spec for table in root.tables("request", "one [[request]] or more") for spec in _requests(table)
        ),
        group=root.choice("group", GROUPS, GROUPS[-1]),
        seed=root.integer("seed", 0),
        model=cost.choice("model", MODELS, "qwen2.5-7b"),
        device=cost.choice("device", DEVICES, "a100"),
        expect=_expect(root.table("expect"), kinds),
        source=source,
    )
    cost.done()
    root.done()
    if len(scenario.requests) > MAX_REQUESTS:
        root.fail("request", f"there are {len(scenario.requests):,} requests, and at most {MAX_REQUESTS:,} can be run")
    if (answers := sum(spec.max_tokens for spec in scenario.requests)) > MAX_ANSWERS:
        root.fail("request", f"the answers have {answers:,} tokens together, and at most {MAX_ANSWERS:,} can be run")
    scenario.require_order()
    for each in kinds:
        scenario.require_fit(each)
    return scenario


def _caches(table: Table, first: Kind) -> dict[Kind, CacheSettings]:
    """The settings of each cache. The values of `[cache]` belong to its kind, or to the hash chain if it is for both.
    The radix tree then gets the same memory, unless its own table says otherwise."""
    base = _cache(table, CacheSettings(first, 16 if first == "hash" else 1, 0))
    settings: dict[Kind, CacheSettings] = {}
    for kind in KINDS:
        own = table.table(kind)
        settings[kind] = _cache(own, base.as_kind(kind))
        own.done()
    table.done()
    return settings


def _cache(table: Table, default: CacheSettings) -> CacheSettings:
    block_size = table.integer("block_size", default.block_size, 1)
    capacity = default.capacity if default.num_blocks else DEFAULT_TOKENS
    num_blocks = table.integer("num_blocks", capacity // block_size + 1, 2)
    if (num_blocks - 1) * block_size > MAX_TOKENS:
        given = [name for name in ("num_blocks", "block_size") if name in table]
        key = max(given, key=table.is_overridden, default="block_size")
        held = f"{num_blocks - 1:,} blocks of {block_size:,} hold {(num_blocks - 1) * block_size:,} tokens"
        table.fail(key, f"{held}, and a simulated pool at most {MAX_TOKENS:,}")
    return CacheSettings(default.kind, block_size, num_blocks, table.choice("strategy", STRATEGIES, default.strategy))


def _schedulers(table: Table) -> dict[Kind, SchedulerConfig]:
    """The scheduler of each cache: without a profile its own engine's, with a profile the same one for both."""
    given = table.choice("profile", PROFILES) if "profile" in table else ""
    changes = {}
    table.allow(SCHEDULER_FIELDS)
    for name in SCHEDULER_FIELDS:
        if name in table:
            changes[name] = table.get(name, (int, float, str), "a number or a text")
    table.done()
    return {kind: _scheduler(table, kind, given, dict(changes)) for kind in KINDS}


def _scheduler(table: Table, kind: Kind, given: str, changes: dict[str, Any]) -> SchedulerConfig:
    profile = given or ("vllm" if kind == "hash" else "sglang")
    if kind == "radix" and changes.get("publish_at", "schedule" if profile == "vllm" else "") == "schedule":
        changes["publish_at"] = "compute"  # a radix cache can do nothing else
    for name, value in changes.items():
        try:
            SchedulerConfig(**{name: value})
        except (MinicacheError, TypeError) as error:
            table.fail(name, str(error).removeprefix(f"{name} "))
    config = SchedulerConfig.vllm(**changes) if profile == "vllm" else SchedulerConfig.sglang(**changes)
    _require_policy(table, config)
    return config


def _require_policy(table: Table, config: SchedulerConfig) -> None:
    from minicache.core.queue_policy import POLICIES

    if config.queue_policy not in POLICIES:
        table.choice("queue_policy", POLICIES)


def _requests(table: Table) -> list[RequestSpec]:
    """The request of this table, or `count` numbered ones."""
    count, every = table.integer("count", 1, 1), table.number("every", 0.0)
    if count > MAX_REQUESTS:
        table.fail("count", f"must be at most {MAX_REQUESTS:,}, not {count:,}")
    spec = RequestSpec(
        id=table.text("id"),
        prompt=tuple(_part(part) for part in table.tables("prompt", "a list of parts, as { text = … }")),
        max_tokens=table.integer("max_tokens", 16, 1),
        at=table.number("at", 0.0),
        step=table.integer("step", 0, 1) or None,
        after=table.text("after", "") or None,
        namespace=_namespace(table),
        priority=table.get("priority", int, "an integer", 0),
        prompt_logprobs=table.integer("prompt_logprobs") if "prompt_logprobs" in table else None,
        skip_cache_read=table.flag("skip_cache_read"),
        line=table.line,
    )
    table.done()
    if not spec.id:
        table.fail("id", "must not be empty")
    if spec.step is not None and ("at" in table or spec.after):
        table.fail("step", "says when it arrives, and so do at and after: give one of them")
    if spec.at + count * every == math.inf:
        table.fail("every", f"is too long: the last of {count:,} requests would never arrive")
    if "count" in table and count > 1 and "{n}" not in spec.id:
        table.fail("id", "needs {n} in it, because count makes several requests from this table")
    return [_numbered(spec, n, spec.at + (n - 1) * every) for n in range(1, count + 1)] if "count" in table else [spec]


def _numbered(spec: RequestSpec, n: int, at: float) -> RequestSpec:
    """The n-th of several: `{n}` in its texts is the number."""

    def fill(text: str) -> str:
        return text.replace("{n}", str(n))

    parts: list[Part] = []
    for part in spec.prompt:
        match part:
            case Text():
                parts.append(Text(fill(part.text)))
            case Segment():
                parts.append(Segment(fill(part.name), part.count))
            case OutputOf():
                parts.append(OutputOf(fill(part.request), part.drop))
            case Tokens():
                parts.append(part)
    space = spec.namespace
    namespace = Namespace(space.adapter, fill(space.salt) if space.salt else None, tuple(map(fill, space.extra)))
    after = fill(spec.after) if spec.after else None
    return replace(spec, id=fill(spec.id), prompt=tuple(parts), at=at, namespace=namespace, after=after)


def _part(table: Table) -> Part:
    kinds = [key for key in ("text", "segment", "output_of") if key in table] or ["tokens"]
    if len(kinds) > 1:
        table.fail("", f"has {' and '.join(kinds)}: a part is one of them")
    part: Part
    match kinds[0]:
        case "text":
            part = Text(table.text("text"))
        case "segment":
            part = Segment(table.text("segment"), table.integer("tokens", minimum=1))
        case "output_of":
            part = OutputOf(table.text("output_of"), table.integer("drop", 0))
        case _:
            tokens = table.get("tokens", list, "a list of token ids (or give text, segment or output_of)")
            if not all(type(token) is int and 0 <= token < 1 << 64 for token in tokens):
                table.fail("tokens", "must be non-negative integers below 2**64")
            part = Tokens(tuple(tokens))
    table.done()
    return part


def _namespace(table: Table) -> Namespace:
    adapter = None
    if "adapter" in table:
        value = table.get("adapter", (str, dict), "a name, or a table with name and path")
        if isinstance(value, str):
            adapter = Adapter(value, f"/adapters/{value}")
        else:
            own = table.table("adapter")
            adapter = Adapter(own.text("name"), own.text("path"), own.text("digest", "") or None)
            own.done()
    extra = table.get("extra", list, "a list of texts", [])
    if not all(isinstance(part, str) for part in extra):
        table.fail("extra", f"must be a list of texts, not {extra!r}")
    return Namespace(adapter, table.text("salt", "") or None, tuple(extra))


def _expect(table: Table, kinds: tuple[Kind, ...]) -> dict[Kind, Expect]:
    """The expected figures of each kind of cache: those in `[expect]`, and those in `[expect.hash]` or
    `[expect.radix]`."""
    shared = _figures(table)
    result: dict[Kind, Expect] = {}
    for kind in KINDS:
        own = table.table(kind)
        figures = _figures(own)
        own.done()
        if kind in kinds or kind in table:
            per_request = {
                name: shared.per_request.get(name, {}) | figures.per_request.get(name, {}) for name in PER_REQUEST
            }
            result[kind] = Expect(per_request, shared.totals | figures.totals, shared.hit_rate | figures.hit_rate)
    table.done()
    return result


def _figures(table: Table) -> Expect:
    """A table has a figure for single requests, a number is the figure of all together."""
    per_request: dict[str, dict[str, Any]] = {}
    totals: dict[str, int] = {}
    for name in (*PER_REQUEST, *TOTALS):
        if name in PER_REQUEST and isinstance(table.data.get(name), dict):
            per_request[name] = dict(table.table(name).data)
        elif name in TOTALS and name in table:
            totals[name] = table.integer(name)
        elif name in PER_REQUEST:
            table.table(name)
    rates = table.table("hit_rate")
    for name in rates.data:
        if name not in RATES:
            rates.fail(name, f"is no definition of a hit rate: there are {', '.join(RATES)}")
    return Expect(per_request, totals, {name: rates.number(name) for name in rates.data})
