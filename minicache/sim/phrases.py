"""Small pieces of sentences: counts, ranges of blocks, hashes."""

from collections.abc import Iterable, Sequence


def plural(count: int, noun: str) -> str:
    """`1 block`, `2 blocks`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listed(words: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    words = list(words)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else "nobody"


def block_ranges(blocks: Sequence[int], limit: int = 6) -> str:
    """Block ids in their order, runs drawn together: `1–4, 9, 8–6`; at most `limit` runs."""
    runs: list[tuple[int, int]] = []
    for block in blocks:
        if runs:
            first, last = runs[-1]
            if abs(block - last) == 1 and (first == last or (block > last) == (last > first)):
                runs[-1] = (first, block)
                continue
        runs.append((block, block))
    shown = [str(a) if a == b else f"{a}, {b}" if abs(a - b) == 1 else f"{a}–{b}" for a, b in runs[:limit]]
    return ", ".join(shown) + (", …" if len(runs) > limit else "")


def named_blocks(blocks: Sequence[int]) -> str:
    """`block 3`, `blocks 1–4`."""
    return f"{'block' if len(blocks) == 1 else 'blocks'} {block_ranges(blocks)}"


def short_hash(hash: bytes) -> str:
    """The first four bytes in hex: enough to tell hashes of one run apart."""
    return hash[:4].hex()


def sentence(text: str) -> str:
    """`text` as a sentence of its own: with a capital where it begins with a word of ours, and with a full stop."""
    text = text.strip()
    return text if text.endswith((".", "!", "?", "…")) else text + "."
