"""What `minicache diff` prints: the figures, both prompts as ribbons, then each cause with its fix."""

from collections.abc import Iterator
from dataclasses import dataclass

from minicache.prompts.diff import Cause, Diff
from minicache.prompts.examine import Examined
from minicache.prompts.kinds import EXPECTED, WORDS, Kind, Layer
from minicache.prompts.ribbon import LEGEND, blocks_per_glyph, drawn, num_blocks
from minicache.prompts.shown import Shown

OFFSET_IN_ENTRIES = {Kind.key_order, Kind.set_order, Kind.tool_set_changed}
LAYERS = {
    Layer.payload: "the client or a gateway sent other JSON",
    Layer.template: "the chat template",
    Layer.template_kwargs: "an argument of the chat template",
    Layer.renderer: "the engine's code around the template",
    Layer.tokenizer: "the tokenizer",
    Layer.engine: "the engine",
    Layer.placement: "where and when the prefix is cached",
    Layer.hosted_rule: "a vendor's rule",
    Layer.none: "nothing is lost",
}


@dataclass(frozen=True, slots=True)
class Costs:
    """What a lost token costs. `speed` is in prompt tokens a second, prices are for a million tokens."""

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
    """All of it in a sentence or two."""
    diff = examined.diff
    if not diff.lost:
        return _no_loss(diff, shown)
    causes = [cause for cause in diff.causes if cause.layer is not Layer.none]
    first = causes[0]
    where = f" at {place(first, shown)}" if first.path else f" ({first.detail})" if first.detail else ""
    more = f", and {len(causes) - 1} more" if len(causes) > 1 else ""
    blameless = diff.only_appends and all(cause.layer is not Layer.payload for cause in causes)
    return (
        f"B reuses {diff.reuse.radix_tokens:,} of {diff.cached_tokens_of_a:,} cached tokens "
        f"({diff.reuse.blocks:,} of {diff.total_blocks:,} blocks): {first.kind}, layer {first.layer}{where}{more}."
    ) + (" B's JSON only appends to A's: no field of it is to blame." if blameless else "")


def _no_loss(diff: Diff, shown: Shown) -> str:
    kinds = [cause.kind for cause in diff.causes]
    if Kind.new_content in kinds:
        return f"No loss: the two share {diff.reuse.lcp:,} tokens and then ask different things."
    if Kind.identical in kinds:
        return "No loss: the two prompts are the same, token for token. No field is to blame."
    if diff.causes:
        first = diff.causes[0]
        where = f" ({shown.path(first.path)})" if first.path else ""
        return f"No loss: the payload differs in {first.kind}{where}, which reaches no prompt."
    if diff.diverge_token is not None:
        return "No loss: B goes on where A's conversation ends."
    return "No loss: B extends A." if diff.reuse.lcp == diff.cached_tokens_of_a else "No loss: B is a beginning of A."


def place(cause: Cause, shown: Shown) -> str:
    assert cause.path is not None
    return shown.path(cause.path) + ("" if cause.offset is None else f", {unit(cause)} {cause.offset:,}")


def unit(cause: Cause) -> str:
    """What the offset of a cause counts."""
    return "entry" if cause.kind in OFFSET_IN_ENTRIES else "character"


def lines(examined: Examined, costs: Costs, shown: Shown) -> Iterator[str]:
    """The report, line by line."""
    diff = examined.diff
    if diff.diverge_token is None:
        yield f"First differing token: none ({diff.reuse.lcp:,} tokens in common)"
    else:
        yield f"First differing token: {diff.diverge_token:,}, counted from 0 ({character(diff)})"
    yield f"  of {diff.cached_tokens_of_a:,} tokens that A left in the cache and {diff.b_tokens:,} of B's prompt"
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
    """How many blocks a prompt has: only whole ones can be reused."""
    rest = num_tokens % diff.block_size
    last = f", the last with {rest} of {diff.block_size} tokens" if rest else ""
    return f"{num_blocks(diff, num_tokens):,} blocks{last}"


def character(diff: Diff) -> str:
    """Where the first differing token stands in the text."""
    a, b = diff.characters
    return f"character {a:,} of both texts" if a == b else f"character {a:,} of A's text and {b:,} of B's"


def _ribbons(examined: Examined) -> Iterator[str]:
    diff = examined.diff
    width = 72
    for name, num_tokens in (("A", diff.cached_tokens_of_a), ("B", diff.b_tokens)):
        each = blocks_per_glyph(diff, num_tokens, width)
        scale = "" if each == 1 else f", {each:,} to a mark"
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
        yield "          This can be meant; then it is no defect."
