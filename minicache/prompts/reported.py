"""Causes that no text shows: reasons why an engine does not read a prefix that both prompts share.

They come from the log alone: the keys that separate caches, the settings of the request, and the number of tokens that
the engine reports as cached, compared with the number that its cache would find.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from minicache.prompts.diff import Cause
from minicache.prompts.kinds import Kind, Layer
from minicache.prompts.request_log import LoggedRequest
from minicache.prompts.reuse import Reuse

UNITS = (16, 32, 64, 128, 256, 512, 784, 1024, 2048, 2144)  # tokens: known block sizes and steps of engines and vendors
IDLE = 300  # seconds: a prefix that was not used for longer may be evicted
TOGETHER = 2.0  # seconds: a request this soon after another starts before the first has published its KV


def unread(a: LoggedRequest, b: LoggedRequest, reuse: Reuse) -> Iterator[Cause]:
    """The causes why B's request reads less than `reuse`, the tokens that both prompts share. Reuse that must not be
    comes first."""
    reported = b.response.cached_tokens
    keys = [dict(request.body.namespace) for request in (a, b)]
    key = next((key for key in {**keys[0], **keys[1]} if keys[0].get(key) != keys[1].get(key)), None)
    if key is not None:
        texts = keys[0].get(key, ""), keys[1].get(key, "")
        if reported:
            yield Cause(
                Layer.engine, Kind.wrong_reuse, (key,), None, *texts, reuse, reuse,
                "Look at this first: the engine reused tokens across a key that must separate them, unless a third "
                "request with B's key had cached them.", f"{reported:,} tokens reported as cached",
            )  # fmt: skip
        else:
            yield Cause(
                Layer.payload, Kind.namespace, (key,), None, *texts, _cut(reuse, 0), reuse,
                "Nothing to repair if the two requests must not share KV; otherwise send the same value in both.",
            )  # fmt: skip
    elif (position := b.body.prompt_logprobs) is not None and reuse.radix_tokens:
        limited = replace(reuse, vllm_tokens=0, radix_tokens=min(reuse.radix_tokens, position))
        yield Cause(
            Layer.engine, Kind.skips_reading, ("prompt_logprobs",), None, "", str(position), limited, reuse,
            "Ask for log-probabilities of the prompt in separate requests: the engine must compute these positions. 0 "
            "does not switch them off; null does.",
        )  # fmt: skip
    elif reported is not None and reported < reuse.vllm_tokens:
        yield _too_few(a, b, reuse, reported)


def _too_few(a: LoggedRequest, b: LoggedRequest, reuse: Reuse, reported: int) -> Cause:
    before = _cut(reuse, reported)
    said = f"the engine reported {reported:,} cached tokens, of {reuse.vllm_tokens:,} possible"
    unit = next((u for u in reversed(UNITS) if reported and reuse.radix_tokens // u * u == reported), None)
    if unit is not None:
        fix = f"The engine reuses whole units of {unit} tokens. A smaller block size loses less at a difference."
        return Cause(Layer.engine, Kind.engine_unit, None, None, "", "", before, reuse, fix, said)
    gap = _gap(a.time, b.time)
    if (gap is not None and (gap > IDLE or 0 <= gap < TOGETHER)) or reported:
        when = f"; B came {gap:,.1f} s after A" if gap is not None else ""
        fix = "The prompts are not the cause. Send B sooner, or after A's answer has begun, or use a larger cache."
        return Cause(Layer.placement, Kind.lifetime, None, None, "", "", before, reuse, fix, said + when)
    fix = "The prompts are not the cause. Route all requests of a conversation to the same server (a sticky key)."
    return Cause(Layer.placement, Kind.placement, None, None, "", "", before, reuse, fix, said)


def _gap(earlier: datetime | None, later: datetime | None) -> float | None:
    """Seconds between two times; `None` if one is not known, or has a time zone and the other has none."""
    if earlier is None or later is None or (earlier.tzinfo is None) != (later.tzinfo is None):
        return None
    return (later - earlier).total_seconds()


def _cut(reuse: Reuse, tokens: int) -> Reuse:
    return replace(reuse, vllm_tokens=min(reuse.vllm_tokens, tokens), radix_tokens=min(reuse.radix_tokens, tokens))
