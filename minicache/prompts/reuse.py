"""The tokens that two prompts share, and how many of them the two caches reuse.

    cached(A)  = A's prompt and the tokens generated after it      LCP = their common prefix with B's prompt
    hash chain = block_size * (min(LCP, len(B) - 1) // block_size)           radix, page 1 = min(LCP, len(B) - 1)

An engine never has KV for the last token that A generated. The figures ignore this, as the published cases do.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from minicache.core.hash_chain_cache import HashChainCache
from minicache.core.prefix_cache import PrefixCache
from minicache.core.radix_cache import RadixCache
from minicache.core.request import Request

# Up to this many tokens the figures come from the caches themselves; for more, from the formulas. Tests compare both.
SIMULATED = 65_536
FIRST_SLICE, LARGEST_SLICE = 64, 65_536


def common_prefix(a: Sequence[object], b: Sequence[object], a_start: int = 0, b_start: int = 0) -> int:
    """The length of the common prefix of `a[a_start:]` and `b[b_start:]`. Compares slices of doubling length, then
    halves the first slice that differs."""
    if type(a) is not type(b):  # ids in bytes and in a list are equal one by one, but their slices are not
        a, b = list(a), list(b)
    length = min(len(a) - a_start, len(b) - b_start)
    low, size = 0, FIRST_SLICE
    while low < length:
        high = min(low + size, length)
        if a[a_start + low : a_start + high] != b[b_start + low : b_start + high]:
            break
        low, size = high, min(2 * size, LARGEST_SLICE)
    else:
        return low
    while high - low > 1:  # the first difference is in [low, high)
        middle = (low + high) // 2
        if a[a_start + low : a_start + middle] == b[b_start + low : b_start + middle]:
            low = middle
        else:
            high = middle
    return low


def joined(a: Sequence[int], b: Sequence[int]) -> Sequence[int]:
    """Two sequences of token ids as one: bytes if both are bytes, else a list."""
    return a + b if isinstance(a, bytes) and isinstance(b, bytes) else [*a, *b]


@dataclass(frozen=True, slots=True)
class Reuse:
    """The common prefix of two prompts, and how much of it each cache reuses. In tokens; `blocks` is in blocks."""

    lcp: int
    vllm_tokens: int
    radix_tokens: int
    block_size: int

    @property
    def blocks(self) -> int:
        return self.vllm_tokens // self.block_size


class Cached:
    """A hash chain and a radix cache that both hold `tokens`."""

    def __init__(self, tokens: Sequence[int], block_size: int) -> None:
        self.tokens, self.block_size = tokens, block_size
        self._caches: tuple[PrefixCache, PrefixCache] | None = None
        if 0 < len(tokens) <= SIMULATED:
            hash_chain = HashChainCache(len(tokens) // block_size + 2, block_size)
            self._caches = (hash_chain, RadixCache(len(tokens) + 1))
            for cache in self._caches:
                request = Request("A", tokens)
                cache.allocate(request, cache.lookup(request), len(tokens))
                request.num_computed_tokens = len(tokens)
                cache.publish(request, len(tokens))
                cache.release(request)

    def reuse(self, prompt: Sequence[int]) -> Reuse:
        """The reuse of a request with `prompt`. Up to `SIMULATED` tokens it is looked up in both caches."""
        lcp = common_prefix(self.tokens, prompt)
        if self._caches is not None and 0 < len(prompt) <= SIMULATED:
            found = [cache.lookup(Request("B", prompt)).num_tokens for cache in self._caches]
            return Reuse(lcp, found[0], found[1], self.block_size)
        return by_formula(lcp, len(prompt), self.block_size)


def by_formula(lcp: int, num_prompt_tokens: int, block_size: int) -> Reuse:
    """The same reuse in closed form."""
    limit = max(min(lcp, num_prompt_tokens - 1), 0)
    return Reuse(lcp, limit - limit % block_size, limit, block_size)
