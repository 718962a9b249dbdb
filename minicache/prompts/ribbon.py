"""A prompt as a ribbon, cut into blocks: what each block is to the cache."""

from enum import StrEnum

from minicache.prompts.diff import Diff


class State(StrEnum):
    reused = "reused"
    parted = "parted"  # holds the first difference
    lost = "lost"  # would be reused but for the causes
    computed = "computed"  # new, or only partly filled


GLYPHS = {State.reused: "■", State.parted: "╳", State.lost: "▒", State.computed: "░"}
LEGEND = "■ reused  ╳ first difference  ▒ lost  ░ new"


def num_blocks(diff: Diff, num_tokens: int) -> int:
    """The blocks of a prompt of so many tokens, a partial last one included."""
    return -(-num_tokens // diff.block_size)


def state(diff: Diff, block: int) -> State:
    """What a block of either prompt is to the cache."""
    if block < diff.reuse.blocks:
        return State.reused
    if diff.diverge_token is not None and block == diff.diverge_token // diff.block_size:
        return State.parted
    return State.lost if (block + 1) * diff.block_size <= diff.ideal.radix_tokens else State.computed


def drawn(diff: Diff, num_tokens: int, width: int = 72) -> str:
    """One glyph for each block, or for each run of blocks that one glyph has to stand for."""
    blocks, each = num_blocks(diff, num_tokens), blocks_per_glyph(diff, num_tokens, width)
    glyphs = [GLYPHS[state(diff, first)] for first in range(0, blocks, each)]
    if (
        diff.diverge_token is not None
        and diff.reuse.blocks <= (parted := diff.diverge_token // diff.block_size) < blocks
    ):
        glyphs[parted // each] = GLYPHS[State.parted]  # it is seen wherever in its run it is
    return "".join(glyphs)


def blocks_per_glyph(diff: Diff, num_tokens: int, width: int = 72) -> int:
    return -(-num_blocks(diff, num_tokens) // width) or 1
