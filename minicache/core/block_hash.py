"""The hash chain: the key under which a block of tokens is found.

    hash[i] = H( hash[i-1], tokens of block i, extra keys )

The hash of the parent covers everything before the block, so equal hashes mean equal prefixes: one changed token
changes the hash of its block and of every block after it. Bit for bit the same as vLLM 0.33's `sha256_cbor` and
`xxhash_cbor` (`vllm/v1/core/kv_cache_utils.py`, `vllm/utils/hashing.py`): H is a digest of canonical CBOR (RFC 8949,
section 4.2.1).
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock

from minicache.core.errors import InvalidArgument
from minicache.core.request import Namespace

ExtraKeys = tuple[tuple[str | int | bytes, ...], ...] | None
BlockHash = Callable[[bytes, Sequence[int], ExtraKeys], bytes]

DEFAULT_SEED = "vllm-none-hash"  # the seed that vLLM uses when PYTHONHASHSEED is not set


def encode(value: object) -> bytes:
    """Canonical CBOR of an integer from -2**64 to 2**64 - 1, a text, bytes, `None`, or a tuple or list of these. Raises
    `InvalidArgument` for anything else."""
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
    """The shortest head of a CBOR item: three bits of type, then a number in the other five bits or in 1, 2, 4 or 8
    bytes after them."""
    if size < 24:
        return bytes((major << 5 | size,))
    for code, width in enumerate((1, 2, 4, 8), start=24):
        if size < 1 << 8 * width:
            return bytes((major << 5 | code,)) + size.to_bytes(width, "big")
    raise InvalidArgument(f"value: {size} does not fit into 64 bits")


_ENCODED: list[bytes] = []  # the CBOR of the token ids 0, 1, 2, …, up to the largest that was needed
_growing = Lock()  # if two threads appended at once, ids would get the CBOR of others
LARGEST_KEPT = 1 << 19  # no vocabulary in use has so many ids; larger ones are encoded each time


def _encoded(token: int) -> bytes:
    """The CBOR of a token id, which the table has from now on."""
    if not 0 <= token < LARGEST_KEPT:
        return encode(token)
    if token >= len(_ENCODED):
        with _growing:
            _ENCODED.extend(map(encode, range(len(_ENCODED), token + 1)))
    return _ENCODED[token]


@lru_cache(maxsize=256)
def _frame(parent_length: int, num_tokens: int) -> tuple[bytes, bytes]:
    """The bytes before the parent, and those between the parent and the tokens: the same for every block of a chain."""
    return b"\x83" + _head(2, parent_length), _head(4, num_tokens)


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
        encoded = b"".join(map(_encoded, tokens))
        before, between = _frame(len(parent), len(tokens))
        return self.digest(b"".join((before, parent, between, encoded, _encoded_keys(extra_keys))))

    def chain(self, parent: bytes, tokens: Sequence[int], block_size: int, extra_keys: ExtraKeys) -> list[bytes]:
        """The hashes of the whole blocks of `tokens`, which have the same extra keys and follow the block `parent`.

        Equal to one call for each block, in little more than half the time: frame and keys are encoded once for all
        blocks, and token ids, which must not be negative, are looked up in a list. `parent` must be a hash of this
        function, because it must be as long as those of the blocks.
        """
        try:
            return self._chain(parent, map(_ENCODED.__getitem__, tokens), block_size, extra_keys)
        except IndexError:  # an id that the table does not have yet
            return self._chain(parent, map(_encoded, tokens), block_size, extra_keys)

    def _chain(self, parent: bytes, encoded: Iterator[bytes], block_size: int, extra_keys: ExtraKeys) -> list[bytes]:
        before, between = _frame(len(parent), block_size)
        keys = _encoded_keys(extra_keys)
        digest, hashes = self.digest, []
        for block in map(b"".join, zip(*[encoded] * block_size, strict=False)):  # whole blocks only
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
