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


def states(diff: Diff, num_tokens: int) -> list[State]:
    """The state of each block of a prompt of `num_tokens` tokens, a partial last block included."""
    size = diff.block_size
    parted = None if diff.diverge_token is None else diff.diverge_token // size
    found = []
    for block in range(-(-num_tokens // size)):
        if block < diff.reuse.blocks:
            found.append(State.reused)
        elif block == parted:
            found.append(State.parted)
        else:
            found.append(State.lost if (block + 1) * size <= diff.ideal.radix_tokens else State.computed)
    return found


def drawn(blocks: list[State], width: int = 72) -> str:
    """One glyph for each block, or for each run of blocks that one glyph has to stand for."""
    per_glyph = -(-len(blocks) // width) or 1
    return "".join(GLYPHS[_of(blocks[i : i + per_glyph])] for i in range(0, len(blocks), per_glyph))


def blocks_per_glyph(blocks: list[State], width: int = 72) -> int:
    return -(-len(blocks) // width) or 1


def _of(run: list[State]) -> State:
    return State.parted if State.parted in run else run[0]
