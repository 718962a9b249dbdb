"""A request: one prompt and the answer that grows after it.

A request is a run of tokens and a few lengths in a fixed order. Everything else is derived from these.

    0 ........ num_computed_tokens ........ num_tokens
    |   KV is in the cache      |  to compute   |
    |<------ prompt ------>|<------ output ---->|
                           num_prompt_tokens

Block `i` of `block_table` holds the KV of token positions `[i * block_size, (i + 1) * block_size)`. Only the cache
writes `block_table`. Only the scheduler writes `status`, `num_preemptions` and `num_computed_tokens`, with one
exception: at each admission the cache sets `num_computed_tokens` to the length of the hit.
"""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from minicache.core.errors import InvalidArgument, require_int, require_number, require_text


class RequestStatus(Enum):
    WAITING = "waiting"
    RUNNING = "running"
    PREEMPTED = "preempted"  # waiting again: it gave up its KV and kept its tokens
    FINISHED = "finished"
    ABORTED = "aborted"

    @property
    def is_final(self) -> bool:
        """Whether the request has ended: no call of the scheduler changes its status any more."""
        return self in (RequestStatus.FINISHED, RequestStatus.ABORTED)


@dataclass(frozen=True, slots=True)
class Adapter:
    """A LoRA adapter as part of a cache key: only requests with an equal adapter can reuse its KV.

    The path is part of the identity: when a name is pointed at other weights, the key changes (vLLM issues #30931 and
    #42125). `digest`, if given, identifies the weights themselves. Raises `InvalidArgument` for a part that is not
    text.
    """

    name: str
    path: str
    digest: str | None = None

    def __post_init__(self) -> None:
        require_text("adapter.name", self.name)
        require_text("adapter.path", self.path)
        if self.digest is not None:
            require_text("adapter.digest", self.digest)

    @property
    def key(self) -> tuple[str, ...]:
        """vLLM 0.33's extra key: `("lora", name, path)`, followed by the digest if one was given."""
        key = ("lora", self.name, self.path)
        return key if self.digest is None else (*key, self.digest)


@dataclass(frozen=True, slots=True)
class Namespace:
    """A boundary for sharing: two requests can share KV only if their namespaces are equal.

    `adapter` separates weights and `salt` separates tenants (`""` means no salt, as in vLLM). `extra` holds anything
    else that changes the KV without changing the tokens (SGLang's `extra_key`). Raises `InvalidArgument` for a part of
    the wrong type.
    """

    adapter: Adapter | None = None
    salt: str | None = None
    extra: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.salt is not None:
            require_text("salt", self.salt)
        if not (self.adapter is None or isinstance(self.adapter, Adapter)):
            raise InvalidArgument(f"adapter must be an Adapter or None, not {self.adapter!r}")
        if not isinstance(self.extra, tuple | list):
            raise InvalidArgument(f"extra must be a tuple of texts, not {self.extra!r}")
        for part in self.extra:
            require_text("extra", part)
        object.__setattr__(self, "salt", self.salt or None)
        object.__setattr__(self, "extra", tuple(self.extra))


DEFAULT_NAMESPACE = Namespace()


_BOOLEANS = array("Q", [0]).tobytes(), array("Q", [1]).tobytes()


def token_array(tokens: Iterable[int], name: str = "tokens") -> "array[int]":
    """A new array (`"Q"`, unsigned 64-bit) of the tokens. Raises `InvalidArgument`, which names `name`, if one of them
    is not an integer from 0 to 2**64 - 1.

    Why not a list? The caches compare and slice runs of thousands of tokens, and arrays do both at the speed of memory.
    """
    try:
        # array("Q", bytes) would read eight bytes as one token.
        found = array("Q", list(tokens) if isinstance(tokens, bytes | bytearray) else tokens)
    except (TypeError, OverflowError, ValueError) as error:
        raise InvalidArgument(f"{name} must be non-negative integers below 2**64: {error}") from None
    # True and False have become 1 and 0. To look at each type takes three times as long as the rest.
    if isinstance(tokens, list | tuple):
        slots = found.tobytes()
        if any(boolean in slots for boolean in _BOOLEANS) and bool in set(map(type, tokens)):
            raise InvalidArgument(f"{name} must be non-negative integers below 2**64, not True or False")
    return found


class Request:
    """One prompt, the tokens generated after it so far, and how many of both have KV in the cache.

    `id`: unique among the requests of one scheduler, not empty.
    `tokens`: the prompt, at least one token; `request.tokens` continues with the output.
    `max_tokens`: the most output tokens, at least 1. `stop_tokens` end the output when one of them is sampled.
    `namespace`: only requests with an equal namespace can share KV.
    `priority`: a lower value is more urgent, as in vLLM. `arrival`, in seconds or any number that grows, orders
    requests of equal priority; `None`: the scheduler numbers the requests as they are added.
    `prompt_logprobs`: the first prompt position whose logits the caller needs (SGLang's `logprob_start_len`). The
    logits of a position give the log-probability of the token after it, and reused positions have none. `None`: the
    caller needs only the logits of the last position.
    `skip_cache_read`: every lookup of this request misses. The request still publishes its own KV.

    Raises `InvalidArgument`, which names the argument, if a value is out of range or of the wrong type.
    """

    __slots__ = (
        "__weakref__",
        "arrival",
        "block_table",
        "finish_reason",
        "id",
        "match_end",
        "max_tokens",
        "namespace",
        "num_cached_tokens",
        "num_computed_tokens",
        "num_preemptions",
        "num_prompt_tokens",
        "priority",
        "prompt_logprobs",
        "skip_cache_read",
        "status",
        "stop_tokens",
        "tokens",
    )

    def __init__(
        self,
        id: str,
        tokens: Sequence[int],
        max_tokens: int = 16,
        *,
        namespace: Namespace = DEFAULT_NAMESPACE,
        priority: int = 0,
        arrival: float | None = None,
        prompt_logprobs: int | None = None,
        skip_cache_read: bool = False,
        stop_tokens: Iterable[int] = (),
    ) -> None:
        if not isinstance(id, str) or not id:
            raise InvalidArgument(f"id must be a non-empty text, not {id!r}")
        self.id = id
        self.tokens = token_array(tokens)  # prompt, then output; `append` adds at the end, nothing else changes it
        if not self.tokens:
            raise InvalidArgument(f"request {id!r} has an empty prompt: give it at least one token")
        self.num_prompt_tokens = len(self.tokens)
        self.max_tokens = require_int("max_tokens", max_tokens, 1)
        if not isinstance(namespace, Namespace):
            raise InvalidArgument(f"namespace must be a Namespace, not {namespace!r}")
        self.namespace = namespace
        self.priority = require_int("priority", priority)
        self.arrival = arrival if arrival is None else require_number("arrival", arrival)
        if prompt_logprobs is not None:
            require_int("prompt_logprobs", prompt_logprobs, 0)
        self.prompt_logprobs = prompt_logprobs
        self.skip_cache_read = bool(skip_cache_read)
        if isinstance(stop_tokens, str) or not isinstance(stop_tokens, Iterable):
            raise InvalidArgument(f"stop_tokens must be token ids, not {stop_tokens!r}")
        self.stop_tokens = frozenset(require_int("each of stop_tokens", token, 0) for token in stop_tokens)

        self.status = RequestStatus.WAITING
        self.finish_reason: str | None = None  # "stop" | "length" | "abort"
        self.block_table: list[int] = []
        self.num_computed_tokens = 0
        self.num_cached_tokens: int | None = None  # tokens hit at the first admission: the number an API reports
        self.match_end: str | None = None  # why that hit ended where it did: its `Match.end`
        self.num_preemptions = 0

    @property
    def num_tokens(self) -> int:
        return len(self.tokens)

    @property
    def num_output_tokens(self) -> int:
        return len(self.tokens) - self.num_prompt_tokens

    @property
    def prompt(self) -> "array[int]":
        return self.tokens[: self.num_prompt_tokens]

    @property
    def output(self) -> "array[int]":
        """The tokens sampled so far. The last one has no KV yet: the step that samples the next token computes it."""
        return self.tokens[self.num_prompt_tokens :]

    def append(self, token: int) -> None:
        """Add one sampled token to the end. Raises `InvalidArgument` if it is not an integer from 0 to 2**64 - 1."""
        try:
            self.tokens.append(token)
        except (TypeError, OverflowError) as error:
            raise InvalidArgument(f"sampled token {token!r} of request {self.id!r}: {error}") from None

    def __repr__(self) -> str:
        return (
            f"Request({self.id!r}, {self.num_prompt_tokens}+{self.num_output_tokens} tokens, "
            f"{self.num_computed_tokens} computed, {self.status.value})"
        )
