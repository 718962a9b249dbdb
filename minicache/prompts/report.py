"""What `minicache diff` prints: the figures, both prompts as ribbons of blocks, then each cause with its fix. As text,
or as JSON."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from minicache.prompts.diff import Cause, Diff
from minicache.prompts.examine import Examined
from minicache.prompts.kinds import EXPECTED, LAYERS, WORDS, Kind, Layer
from minicache.prompts.shown import Shown
from minicache.text.byte_tokenizer import PlainByteTokenizer

BYTES = "each byte counts as one token; use --tokenizer to count with your model's tokenizer"
OFFSET_IN_ENTRIES = {Kind.key_order, Kind.set_order, Kind.tool_set_changed}


@dataclass(frozen=True, slots=True)
class Costs:
    """The cost of a lost token. `speed` is in prompt tokens per second, the prices are per million tokens."""

    speed: float | None = None
    price: float | None = None
    cached_price: float = 0.0

    def seconds(self, tokens: int) -> float | None:
        return None if self.speed is None else tokens / self.speed

    def money(self, tokens: int) -> float | None:
        return None if self.price is None else tokens * (self.price - self.cached_price) / 1e6

    def words(self, tokens: int) -> str:
        seconds, money = self.seconds(tokens), self.money(tokens)
        parts = [] if seconds is None else [f"{seconds:,.3g} s of prefill"]
        return ", ".join(parts if money is None else [*parts, f"{money:.3g} in money, each time"])


def verdict(examined: Examined, shown: Shown) -> str:
    """The whole diff in one or two sentences."""
    diff = examined.diff
    if not diff.lost:
        return _no_loss(diff, shown)
    causes = [cause for cause in diff.causes if cause.layer is not Layer.none]
    first = causes[0]
    which = "The cause is" if len(causes) == 1 else f"The first of {len(causes)} causes is"
    where = f" at {place(first, shown)}" if first.path else f", {first.detail}" if first.detail else ""
    blameless = diff.only_appends and all(cause.layer is not Layer.payload for cause in causes)
    return (
        f"B reuses {diff.reuse.radix_tokens:,} of {diff.cached_tokens_of_a:,} cached tokens "
        f"({diff.reuse.blocks:,} of {diff.total_blocks:,} blocks). {which} {first.kind} (layer {first.layer}){where}."
    ) + (" B's JSON only appends to A's, so no field of the request is the cause." if blameless else "")


def _no_loss(diff: Diff, shown: Shown) -> str:
    kinds = [cause.kind for cause in diff.causes]
    if Kind.new_content in kinds:
        return f"No loss: the two prompts share {diff.reuse.lcp:,} tokens and then ask different things."
    if Kind.identical in kinds:
        return "No loss: the two prompts are equal, token for token."
    if diff.causes:
        first = diff.causes[0]
        where = f" ({shown.path(first.path)})" if first.path else ""
        return f"No loss: the requests differ in {first.kind}{where}, which is not part of the prompt."
    if diff.diverge_token is not None:
        return "No loss: B continues where A's conversation ends."
    return "No loss: B extends A." if diff.reuse.lcp == diff.cached_tokens_of_a else "No loss: A begins with B."


def counts_bytes(examined: Examined) -> bool:
    """Whether tokens are bytes, because the caller named no tokenizer."""
    return isinstance(examined.earlier.prompt.means.tokenizer, PlainByteTokenizer)


def place(cause: Cause, shown: Shown) -> str:
    """The path of a cause and the offset in it."""
    assert cause.path is not None
    return shown.path(cause.path) + ("" if cause.offset is None else f", {unit(cause)} {cause.offset:,}")


def unit(cause: Cause) -> str:
    """The unit in which the offset of a cause counts."""
    return "entry" if cause.kind in OFFSET_IN_ENTRIES else "character"


def lines(examined: Examined, costs: Costs, shown: Shown) -> Iterator[str]:
    """The report as text, line by line."""
    diff = examined.diff
    if diff.diverge_token is None:
        yield f"First differing token: none ({diff.reuse.lcp:,} tokens in common)"
    else:
        yield f"First differing token: {diff.diverge_token:,}, counted from 0 ({character(diff)})"
    left = f"A, the earlier request, left {diff.cached_tokens_of_a:,} tokens in the cache"
    yield f"  {left}; B's prompt has {diff.b_tokens:,}"
    if counts_bytes(examined):
        yield f"  {BYTES}"
    yield f"Reusable blocks: {diff.reuse.blocks:,} of {diff.total_blocks:,} whole blocks (block size {diff.block_size})"
    yield f"  {diff.reuse.vllm_tokens:,} tokens with vLLM, {diff.reuse.radix_tokens:,} with SGLang (page 1)"
    yield ""
    yield f"  before  {shown.line(diff.context[0])}"
    yield f"  A       {shown.line(diff.context[1])}"
    yield f"  B       {shown.line(diff.context[2])}"
    yield ""
    yield from _ribbons(examined)
    for number, cause in enumerate(diff.causes, 1):
        yield ""
        yield from _cause(number, len(diff.causes), cause, costs, shown)
    yield ""
    yield verdict(examined, shown)
    for note in diff.notes:
        yield f"Note: {note}"


def blocks(diff: Diff, num_tokens: int) -> str:
    """The number of blocks of a prompt, and how full the last one is: only whole blocks can be reused."""
    rest = num_tokens % diff.block_size
    last = f", the last with {rest} of {diff.block_size} tokens" if rest else ""
    return f"{num_blocks(diff, num_tokens):,} blocks{last}"


def character(diff: Diff) -> str:
    """The character at which the first differing token begins."""
    a, b = diff.characters
    return f"character {a:,} of both texts" if a == b else f"character {a:,} of A's text and {b:,} of B's"


def _ribbons(examined: Examined) -> Iterator[str]:
    diff = examined.diff
    width = 72
    for name, num_tokens in (("A", diff.cached_tokens_of_a), ("B", diff.b_tokens)):
        each = blocks_per_glyph(diff, num_tokens, width)
        scale = "" if each == 1 else f", {each:,} blocks per mark"
        yield f"  {name}  {drawn(diff, num_tokens, width)}"
        yield f"     {blocks(diff, num_tokens)}{scale}"
    yield f"     {LEGEND}"


def _cause(number: int, total: int, cause: Cause, costs: Costs, shown: Shown) -> Iterator[str]:
    yield f"Cause {number} of {total}: {cause.kind} ({WORDS[cause.kind]})"
    yield f"  layer   {cause.layer}: {LAYERS[cause.layer]}"
    if cause.path is not None:
        yield f"  where   {place(cause, shown)}"
    if cause.detail:
        yield f"  detail  {cause.detail}"
    if cause.a_text or cause.b_text:
        yield f"  A       {shown.line(cause.a_text) or '(nothing)'}"
        yield f"  B       {shown.line(cause.b_text) or '(nothing)'}"
    for a, b in cause.more[:3]:
        yield f"  also    {shown.line(a, 120) or '(nothing)'}  →  {shown.line(b, 120) or '(nothing)'}"
    if len(cause.more) > 3:
        yield f"          and {len(cause.more) - 3:,} more"
    if cause.layer is not Layer.none:
        words = costs.words(cause.gain_tokens)
        yield f"  loss    {cause.gain_tokens:,} tokens, {cause.gain_blocks:,} blocks" + (f"; {words}" if words else "")
    yield f"  fix     {cause.fix}"
    if cause.layer is not Layer.none:
        yield (
            f"  fixed   reuse {cause.before.radix_tokens:,} → {cause.after.radix_tokens:,} tokens, "
            f"{cause.before.blocks:,} → {cause.after.blocks:,} blocks (simulated)"
        )
    if cause.kind in EXPECTED:
        yield "          This may be intended; then there is nothing to repair."


def to_json(examined: Examined, costs: Costs, shown: Shown) -> dict[str, Any]:
    """The object that `--json` prints. Offsets count characters of the field's text, or entries of an object or list;
    offsets, tokens and blocks count from 0."""
    diff = examined.diff
    return {
        "a": {"tokens": diff.a_tokens},
        "b": {"tokens": diff.b_tokens},
        "generated_tokens": diff.generated_tokens,
        "cached_tokens_of_a": diff.cached_tokens_of_a,
        "diverge_token": diff.diverge_token,
        "reusable": {
            "block_size": diff.block_size,
            "blocks": diff.reuse.blocks,
            "total_blocks": diff.total_blocks,
            "vllm_tokens": diff.reuse.vllm_tokens,
            "radix_tokens": diff.reuse.radix_tokens,
        },
        "context": [shown.text(text) for text in diff.context],
        "causes": [_cause_json(cause, costs, shown) for cause in diff.causes],
        "verdict": " ".join([verdict(examined, shown), *diff.notes]),
    }


def _cause_json(cause: Cause, costs: Costs, shown: Shown) -> dict[str, Any]:
    found = {
        "layer": str(cause.layer),
        "kind": str(cause.kind),
        "path": None if cause.path is None else shown.path(cause.path),
        "offset": cause.offset,
        "a_text": shown.text(cause.a_text),
        "b_text": shown.text(cause.b_text),
        "gain_tokens": cause.gain_tokens,
        "gain_blocks": cause.gain_blocks,
        "fix": cause.fix,
    }
    seconds, money = costs.seconds(cause.gain_tokens), costs.money(cause.gain_tokens)
    return {
        **found,
        **({} if seconds is None else {"gain_seconds": seconds}),
        **({} if money is None else {"gain_money": money}),
    }


class State(StrEnum):
    """What the cache makes of a block of a prompt."""

    reused = "reused"
    parted = "parted"  # holds the first difference
    lost = "lost"  # reused if every cause is repaired
    computed = "computed"  # new, or only partly filled


GLYPHS = {State.reused: "■", State.parted: "╳", State.lost: "▒", State.computed: "░"}
LEGEND = "■ reused  ╳ first difference  ▒ lost  ░ new"


def num_blocks(diff: Diff, num_tokens: int) -> int:
    """The number of blocks of a prompt of `num_tokens` tokens, a partial last one included."""
    return -(-num_tokens // diff.block_size)


def state(diff: Diff, block: int) -> State:
    """The state of block number `block` of either prompt."""
    if block < diff.reuse.blocks:
        return State.reused
    if diff.diverge_token is not None and block == diff.diverge_token // diff.block_size:
        return State.parted
    return State.lost if (block + 1) * diff.block_size <= diff.ideal.radix_tokens else State.computed


def drawn(diff: Diff, num_tokens: int, width: int = 72) -> str:
    """A ribbon of at most `width` glyphs, each for one block or for the same number of blocks."""
    blocks, each = num_blocks(diff, num_tokens), blocks_per_glyph(diff, num_tokens, width)
    glyphs = [GLYPHS[state(diff, first)] for first in range(0, blocks, each)]
    if (
        diff.diverge_token is not None
        and diff.reuse.blocks <= (parted := diff.diverge_token // diff.block_size) < blocks
    ):
        glyphs[parted // each] = GLYPHS[State.parted]  # shown for a whole run of blocks, so that it is always visible
    return "".join(glyphs)


def blocks_per_glyph(diff: Diff, num_tokens: int, width: int = 72) -> int:
    return -(-num_blocks(diff, num_tokens) // width) or 1
