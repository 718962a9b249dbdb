"""The hash chain: the key under which a block of tokens is found.

    hash[i] = H( hash[i-1], tokens of block i, extra keys )

The hash of the parent covers everything before the block, so equal hashes mean equal prefixes: one changed token
changes the hash of its block and of every block after it. Bit for bit the same as vLLM 0.33's `sha256_cbor` and
`xxhash_cbor` (`vllm/v1/core/kv_cache_utils.py`, `vllm/utils/hashing.py`): H is a digest of canonical CBOR (RFC 8949,
section 4.2.1).
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from minicache.core.cbor import encode, encode_blocks, encode_tokens, head
from minicache.core.request import Namespace

ExtraKeys = tuple[tuple[str | int | bytes, ...], ...] | None
BlockHash = Callable[[bytes, Sequence[int], ExtraKeys], bytes]

DEFAULT_SEED = "vllm-none-hash"  # the seed that vLLM uses when PYTHONHASHSEED is not set


@lru_cache(maxsize=256)
def _frame(parent_length: int, num_tokens: int) -> tuple[bytes, bytes]:
    """The bytes before the parent, and those between the parent and the tokens: the same for every block of a chain."""
    return b"\x83" + head(2, parent_length), head(4, num_tokens)


_encoded_keys = lru_cache(maxsize=1024)(encode)  # all blocks of a namespace use the same few keys


@dataclass(frozen=True)
class CborHash:
    """A block hash function, `(parent, tokens, extra_keys) -> digest`, and the root of its chains.

    `digest` maps bytes to bytes. `seeded`: the root has a fixed default seed, the same in every process. A digest that
    is not cryptographic starts from a random root instead, so that a client cannot prepare collisions.
    """

    name: str
    digest: Callable[[bytes], bytes]
    seeded: bool = True

    def __call__(self, parent: bytes, tokens: Sequence[int], extra_keys: ExtraKeys = None) -> bytes:
        encoded = encode_tokens(tokens)
        before, between = _frame(len(parent), len(tokens))
        return self.digest(b"".join((before, parent, between, encoded, _encoded_keys(extra_keys))))

    def chain(self, parent: bytes, tokens: Sequence[int], block_size: int, extra_keys: ExtraKeys) -> list[bytes]:
        """The hashes of the whole blocks of `tokens`, which have the same extra keys and follow the block `parent`.

        Equal to one call for each block, in little more than half the time: frame and keys are encoded once for all
        blocks. `parent` must be a hash of this function, because it must be as long as those of the blocks.
        """
        before, between = _frame(len(parent), block_size)
        keys = _encoded_keys(extra_keys)
        digest, hashes = self.digest, []
        for block in encode_blocks(tokens, block_size):
            parent = digest(before + parent + between + block + keys)
            hashes.append(parent)
        return hashes

    def root(self, seed: str | None = None) -> bytes:
        """The parent hash of every first block. `seed` is the text that vLLM reads from PYTHONHASHSEED, not a number;
        `None` stands for `DEFAULT_SEED`, or for a random seed if the function is not `seeded`."""
        if seed is None:
            seed = DEFAULT_SEED if self.seeded else os.urandom(32).hex()
        return self.digest(encode(seed))


sha256_cbor = CborHash("sha256_cbor", lambda data: hashlib.sha256(data).digest())


def xxhash_cbor(xxh3_128_digest: Callable[[bytes], bytes]) -> CborHash:
    """vLLM's `xxhash_cbor`. The caller hands in `xxhash.xxh3_128_digest`, because the core imports no package."""
    return CborHash("xxhash_cbor", xxh3_128_digest, seeded=False)


def extra_keys(namespace: Namespace, is_first: bool) -> ExtraKeys:
    """The part of a block's key that does not come from its tokens: adapter, extra and salt, each with a tag (vLLM PR
    #44706), or `None` if the namespace has none of them.

    The salt is in the key of the first block only: through the chain it changes the hashes of all later blocks. The
    other parts are in the key of every block.
    """
    keys: list[tuple[str | int | bytes, ...]] = []
    if namespace.adapter is not None:
        keys.append(namespace.adapter.key)
    if namespace.extra:
        keys.append(("extra", *namespace.extra))
    if namespace.salt is not None and is_first:
        keys.append(("cache_salt", namespace.salt))
    return tuple(keys) or None


def hash_chain(
    tokens: Sequence[int],
    block_size: int,
    root: bytes,
    namespace: Namespace,
    block_hash: BlockHash = sha256_cbor,
    known: Iterable[bytes] = (),
) -> list[bytes]:
    """The hashes of all whole blocks of `tokens`, in order. `known` holds the hashes of the first blocks, if the caller
    has them; they are not computed again. Pure."""
    if len(tokens) < block_size:
        return []
    hashes = list(known) or [block_hash(root, tokens[:block_size], extra_keys(namespace, is_first=True))]
    known_tokens, keys = len(hashes) * block_size, extra_keys(namespace, is_first=False)
    if isinstance(block_hash, CborHash):
        return hashes + block_hash.chain(hashes[-1], tokens[known_tokens:], block_size, keys)
    for start in range(known_tokens, len(tokens) - block_size + 1, block_size):
        hashes.append(block_hash(hashes[-1], tokens[start : start + block_size], keys))
    return hashes
