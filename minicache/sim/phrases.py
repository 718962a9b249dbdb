"""Small pieces of sentences (counts, ranges of blocks, hashes), and the words of the field with their meanings.

Blocks are numbered in two ways, and a reader must see which: those of the pool are `b43`, `b1–b16`; those of a prompt,
counted from its beginning, are `its block 0`.
"""

from collections.abc import Iterable, Sequence


def plural(count: int, noun: str) -> str:
    """`1 block`, `2 blocks`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def requests_do(count: int, verb: str, noun: str = "request") -> str:
    """`1 request waits`, `2 requests wait`."""
    return f"{plural(count, noun)} {verb}{'s' if count == 1 else ''}"


def listed(words: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`; nothing if there are no words."""
    *most, last = [*words] or [""]
    return f"{', '.join(most)} and {last}" if most else last


def ranges(numbers: Sequence[int], limit: int = 6, sign: str = "") -> str:
    """Numbers in their order, runs drawn together: `1–4, 9, 8–6`; at most `limit` runs. `sign` precedes each."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs:
            first, last = runs[-1]
            if abs(number - last) == 1 and (first == last or (number > last) == (last > first)):
                runs[-1] = (first, number)
                continue
        runs.append((number, number))
        if len(runs) > limit:
            break
    shown = [
        f"{sign}{a}" if a == b else f"{sign}{a}{', ' if abs(a - b) == 1 else '–'}{sign}{b}" for a, b in runs[:limit]
    ]
    return ", ".join(shown) + (", …" if len(runs) > limit else "")


def block_ranges(blocks: Sequence[int], limit: int = 6) -> str:
    """Blocks of the pool in their order: `b1–b4, b9, b8–b6`; at most `limit` runs."""
    return ranges(blocks, limit, "b")


def named_blocks(blocks: Sequence[int], limit: int = 6) -> str:
    """`block b3`, `blocks b1–b4`: of the pool."""
    return f"{'block' if len(blocks) == 1 else 'blocks'} {block_ranges(blocks, limit)}"


def own_blocks(numbers: Sequence[int]) -> str:
    """`its block 3`, `its blocks 1–4`: of a prompt."""
    return f"its {'block' if len(numbers) == 1 else 'blocks'} {ranges(numbers)}"


def short_hash(hash: bytes) -> str:
    """The first four bytes in hex: enough to tell the hashes of one run apart."""
    return hash[:4].hex()


GLOSSARY: dict[str, str] = {
    "KV": "keys and values: what the model computes for a token once, and reads again for every later token",
    "prefill": "computing the KV of a prompt, many tokens in a step",
    "decode": "generating an answer, one token in a step",
    "hash chain": "vLLM's prefix cache, which finds a full block by a hash of its tokens and of all tokens before them",
    "radix tree": "SGLang's prefix cache, in which prompts are paths that share nodes as far as their tokens agree",
    "publish": "to let lookups find a block, or a node of the tree, from now on",
    "adopt": "to take cached blocks that a lookup found into the request's own block table",
    "hit": "what a lookup found in the cache, in tokens: their KV is not computed again",
    "cached": "said of a block that a lookup can find and no request uses: it is kept until its room is needed",
    "evict": "to forget what a cached block holds, so that another request can have the block",
    "null block": "block b0, which fills the empty places of block tables and is never handed out",
    "preempted": "made to give its blocks back and wait again, because a running request needed a block and none was "
    "free",
    "lpm": "longest prefix match: a queue policy that admits first the request with the most cached tokens",
    "lru": "least recently used: an eviction strategy that evicts first what has not been used for the longest time",
    "lfu": "least frequently used: an eviction strategy that evicts first the node with the fewest hits",
    "modelled": "said of a time that comes from a formula over what a step computes, not from a clock",
}
