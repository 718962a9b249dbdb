"""The hash chain: what makes a block the same block.

    hash[i] = H( hash[i-1], tokens of block i, extra keys )

The parent's hash stands for everything before, so equal hashes mean equal prefixes: that is why one changed token
changes the hash of its block and of every block after it. Bit for bit vLLM 0.33's `sha256_cbor` and `xxhash_cbor`
(`vllm/v1/core/kv_cache_utils.py`, `vllm/utils/hashing.py`): H is a digest of canonical CBOR (RFC 8949, section 4.2.1).
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from minicache.core.errors import InvalidArgument
from minicache.core.request import Namespace

ExtraKeys = tuple[tuple[str | int | bytes, ...], ...] | None
BlockHash = Callable[[bytes, Sequence[int], ExtraKeys], bytes]

DEFAULT_SEED = "vllm-none-hash"


def encode(value: object) -> bytes:
    """Canonical CBOR of integers below 2**64 in size, text, bytes, `None`, and tuples or lists of these."""
    if value is None:
        return b"\xf6"
    if isinstance(value, int):
        return _head(0, value) if value >= 0 else _head(1, -1 - value)
    if isinstance(value, bytes):
        return _head(2, len(value)) + value
    if isinstance(value, str):
        text = value.encode()
        return _head(3, len(text)) + text
    if isinstance(value, tuple | list):
        return _head(4, len(value)) + b"".join(map(encode, value))
    raise InvalidArgument(f"value: cannot encode {type(value).__name__} as part of a cache key")


def _head(major: int, size: int) -> bytes:
    """The shortest head of a CBOR item: three bits of type, then a number in 0, 1, 2, 4 or 8 bytes more."""
    if size < 24:
        return bytes((major << 5 | size,))
    for code, width in enumerate((1, 2, 4, 8), start=24):
        if size < 1 << 8 * width:
            return bytes((major << 5 | code,)) + size.to_bytes(width, "big")
    raise InvalidArgument(f"value: {size} does not fit into 64 bits")


class _EncodedTokens(dict[int, bytes]):
    """Token id -> its CBOR. Ids come from a vocabulary, so each is encoded once and looked up ever after."""

    LARGEST_KEPT = 1 << 19  # larger than any vocabulary in use; ids beyond it are encoded each time

    def __missing__(self, token: int) -> bytes:
        encoded = encode(token)
        if token < self.LARGEST_KEPT:
            self[token] = encoded
        return encoded


_encoded_tokens = _EncodedTokens()


@lru_cache(maxsize=256)
def _frame(parent_length: int, num_tokens: int) -> tuple[bytes, bytes]:
    """What stands before the parent, and between the parent and the tokens: the same for every block of a chain."""
    return b"\x83" + _head(2, parent_length), _head(4, num_tokens)


_encoded_keys = lru_cache(maxsize=1024)(encode)  # the same few keys for all blocks of a namespace


@dataclass(frozen=True)
class CborHash:
    """A block hash function `(parent, tokens, extra_keys) -> digest`, and its root.

    `digest` maps bytes to bytes. `seeded`: without a seed the root is the same in every process; a digest that is not
    cryptographic starts from a random root instead, so that nobody can prepare collisions.
    """

    name: str
    digest: Callable[[bytes], bytes]
    seeded: bool = True

    def __call__(self, parent: bytes, tokens: Sequence[int], extra_keys: ExtraKeys = None) -> bytes:
        encoded = b"".join(map(_encoded_tokens.__getitem__, tokens))
        before, between = _frame(len(parent), len(tokens))
        return self.digest(b"".join((before, parent, between, encoded, _encoded_keys(extra_keys))))

    def root(self, seed: str | None = None) -> bytes:
        """The parent of every first block. `seed` is what vLLM reads from PYTHONHASHSEED: text, not a number."""
        if seed is None:
            seed = DEFAULT_SEED if self.seeded else os.urandom(32).hex()
        return self.digest(encode(seed))


sha256_cbor = CborHash("sha256_cbor", lambda data: hashlib.sha256(data).digest())


def xxhash_cbor(xxh3_128_digest: Callable[[bytes], bytes]) -> CborHash:
    """vLLM's `xxhash_cbor`, given `xxhash.xxh3_128_digest`: the core imports no package."""
    return CborHash("xxhash_cbor", xxh3_128_digest, seeded=False)


def extra_keys(namespace: Namespace, is_first: bool) -> ExtraKeys:
    """What a block's key holds beside its tokens, each part tagged (vLLM PR #44706): adapter, extra, salt.

    The salt is in the first block only: it reaches the others through the chain. The rest is in every block.
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
    """The hashes of all whole blocks of `tokens`. Those in `known`, the chain of an earlier part, are not redone."""
    hashes = list(known)
    first, later = extra_keys(namespace, True), extra_keys(namespace, False)
    parent = hashes[-1] if hashes else root
    for start in range(len(hashes) * block_size, len(tokens) - block_size + 1, block_size):
        parent = block_hash(parent, tokens[start : start + block_size], later if start else first)
        hashes.append(parent)
    return hashes
