"""Small pieces of sentences: counts, ranges of blocks, hashes.

Blocks are numbered in two ways, and one must see which: those of the pool are `b43`, `b1–b16`; those of a prompt,
counted from its beginning, are `its block 0`.
"""

from collections.abc import Iterable, Sequence


def plural(count: int, noun: str) -> str:
    """`1 block`, `2 blocks`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listed(words: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    words = list(words)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else "nobody"


def ranges(numbers: Sequence[int], limit: int = 6, sign: str = "") -> str:
    """Numbers in their order, runs drawn together: `1–4, 9, 8–6`; at most `limit` runs. `sign` stands before each."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs:
            first, last = runs[-1]
            if abs(number - last) == 1 and (first == last or (number > last) == (last > first)):
                runs[-1] = (first, number)
                continue
        runs.append((number, number))
    shown = [
        f"{sign}{a}" if a == b else f"{sign}{a}{', ' if abs(a - b) == 1 else '–'}{sign}{b}" for a, b in runs[:limit]
    ]
    return ", ".join(shown) + (", …" if len(runs) > limit else "")


def block_ranges(blocks: Sequence[int], limit: int = 6) -> str:
    """Blocks of the pool in their order: `b1–b4, b9, b8–b6`; at most `limit` runs."""
    return ranges(blocks, limit, "b")


def named_blocks(blocks: Sequence[int]) -> str:
    """`block b3`, `blocks b1–b4`: of the pool."""
    return f"{'block' if len(blocks) == 1 else 'blocks'} {block_ranges(blocks)}"


def own_blocks(numbers: Sequence[int]) -> str:
    """`its block 3`, `its blocks 1–4`: of a prompt."""
    return f"its {'block' if len(numbers) == 1 else 'blocks'} {ranges(numbers)}"


def short_hash(hash: bytes) -> str:
    """The first four bytes in hex: enough to tell hashes of one run apart."""
    return hash[:4].hex()


def sentence(text: str) -> str:
    """`text` as a sentence of its own: with a capital where it begins with a word of ours, and with a full stop."""
    text = text.strip()
    return text if text.endswith((".", "!", "?", "…")) else text + "."
