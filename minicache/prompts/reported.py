"""What keeps an engine from reading a prefix that both prompts share: its key, its settings, where it looked.

Only what the log says is judged. How many tokens an engine reports as cached is compared with what its cache would
find.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from minicache.prompts.figures import Reuse
from minicache.prompts.kinds import Kind, Layer
from minicache.prompts.request_log import LoggedRequest
from minicache.text.origin import Path

UNITS = (
    16,
    32,
    64,
    128,
    256,
    512,
    784,
    1024,
    2048,
    2144,
)  # block sizes and steps that engines and vendors are known for
IDLE = 300  # seconds after which a prefix that nobody used may be gone
TOGETHER = 2.0  # seconds within which two requests started in parallel: the first had published nothing


@dataclass(frozen=True, slots=True)
class Unread:
    """A cause that no text shows: `before` is what is reused with it, `after` what the tokens alone allow."""

    layer: Layer
    kind: Kind
    path: Path | None
    a: str
    b: str
    before: Reuse
    after: Reuse
    fix: str
    detail: str = ""


def unread(a: LoggedRequest, b: LoggedRequest, reuse: Reuse) -> Iterator[Unread]:
    """What B's request could read of `reuse`, the tokens that both share; correctness goes before cost."""
    reported = b.response.cached_tokens
    keys = [dict(request.body.namespace) for request in (a, b)]
    key = next((key for key in {**keys[0], **keys[1]} if keys[0].get(key) != keys[1].get(key)), None)
    if key is not None:
        texts = keys[0].get(key, ""), keys[1].get(key, "")
        if reported:
            yield Unread(
                Layer.engine, Kind.wrong_reuse, (key,), *texts, reuse, reuse,
                "Report this first: the engine reused tokens across a key that must separate them (or a third request "
                "with B's key had left them).", f"{reported:,} tokens reported as cached",
            )  # fmt: skip
        else:
            yield Unread(
                Layer.payload, Kind.namespace, (key,), *texts, _cut(reuse, 0), reuse,
                "Nothing to repair if the two must not share; a value that is new in every request shares nothing.",
            )  # fmt: skip
    elif b.body.prompt_logprobs is not None and reuse.radix_tokens:
        limited = replace(reuse, vllm_tokens=0, radix_tokens=min(reuse.radix_tokens, b.body.prompt_logprobs))
        yield Unread(
            Layer.engine, Kind.skips_reading, ("prompt_logprobs",), "", str(b.body.prompt_logprobs), limited, reuse,
            "Ask for log-probabilities of the prompt in separate requests: what is wanted must be computed (0 is not "
            "off).",
        )  # fmt: skip
    elif reported is not None and reported < reuse.vllm_tokens:
        yield _too_few(a, b, reuse, reported)


def _too_few(a: LoggedRequest, b: LoggedRequest, reuse: Reuse, reported: int) -> Unread:
    before = _cut(reuse, reported)
    said = f"{reported:,} tokens reported as cached, of {reuse.vllm_tokens:,} that could be"
    unit = next((u for u in reversed(UNITS) if reported and reuse.radix_tokens // u * u == reported), None)
    if unit is not None:
        fix = f"The engine reuses whole units of {unit} tokens; a smaller block size loses less at each divergence."
        return Unread(Layer.engine, Kind.engine_unit, None, "", "", before, reuse, fix, said)
    gap = None if a.time is None or b.time is None else (b.time - a.time).total_seconds()
    if (gap is not None and (gap > IDLE or 0 <= gap < TOGETHER)) or reported:
        when = f"; B came {gap:,.1f} s after A" if gap is not None else ""
        fix = (
            "Nothing in the prompt is to blame. Send it sooner, or after the first answer has begun, or give the cache "
            "more room."
        )
        return Unread(Layer.placement, Kind.lifetime, None, "", "", before, reuse, fix, said + when)
    fix = "Nothing in the prompt is to blame. Route a conversation to the server that has its prefix (a sticky key)."
    return Unread(Layer.placement, Kind.placement, None, "", "", before, reuse, fix, said)


def _cut(reuse: Reuse, tokens: int) -> Reuse:
    return replace(reuse, vllm_tokens=min(reuse.vllm_tokens, tokens), radix_tokens=min(reuse.radix_tokens, tokens))
