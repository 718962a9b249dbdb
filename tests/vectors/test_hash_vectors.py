"""H: the block hash, bit for bit.

The figures are vLLM 0.33's, seen in a run of it. Every one is reached here through the cache's own path
(`HashChainCache.hashes`) where the cache can be asked for it, otherwise through the block hash function.
"""

import pytest
import xxhash

from minicache.core import Adapter, HashChainCache, Namespace, Request
from minicache.core.block_hash import CborHash, extra_keys, sha256_cbor, xxhash_cbor
from minicache.core.cbor import encode
from tests.vectors.drivers import span
from tests.vectors.registry import table, vector

ROOT_HASH = "9bd96a485ad84efdafb72ee48a1d7a69bcead0f8f0433173941b276b9581eef0"
XXHASH_CBOR = xxhash_cbor(xxhash.xxh3_128_digest)
PREIMAGE = CborHash("preimage", bytes)  # a "digest" that shows what is hashed

SALTED = Namespace(salt="tenant-a")
ADAPTED = Namespace(adapter=Adapter("adapter", "/p/adapter"))
NO_NAMESPACE = Namespace()


def cache_hashes(cache: HashChainCache, tokens: list[int], namespace: Namespace = NO_NAMESPACE) -> list[str]:
    return [hash.hex() for hash in cache.hashes(Request("r", tokens, namespace=namespace))]


@vector("H1", "CBOR of the default seed")
def test_seed_is_encoded_as_text() -> None:
    assert encode("vllm-none-hash").hex() == "6e766c6c6d2d6e6f6e652d68617368"


@vector("H2", "the root hash, parent of every first block")
def test_root_hash() -> None:
    assert sha256_cbor.root().hex() == ROOT_HASH
    assert HashChainCache(2).root_hash.hex() == ROOT_HASH


@vector("H3", "the bytes that are hashed for a first block")
def test_bytes_that_are_hashed() -> None:
    hashed = PREIMAGE(sha256_cbor.root(), span(0, 4), None)
    assert hashed.hex() == "8358209bd96a485ad84efdafb72ee48a1d7a69bcead0f8f0433173941b276b9581eef08400010203f6"


@table(
    "tokens, block_size, namespace, preimage, hashes",
    {
        "H4": (
            "a chain of three blocks of four",
            span(0, 12),
            4,
            NO_NAMESPACE,
            "8400010203f6",
            [
                "c49ab11fb576db6f376aef58c24f728a0ba1807e8cac5f940f1a5c4c20741898",
                "9d0a7c928c548f9aeea31ae98471cf515045a206851732ac14cb3083c18d40f9",
                "f96dd657a1cf55a0a400707b90c437fb0b516dbc833996713e6829a3fe01fe19",
            ],
        ),
        "H5": (
            "cache salt: in the first block's key only, in every block's hash",
            span(0, 12),
            4,
            SALTED,
            "81826a63616368655f73616c746874656e616e742d61",
            [
                "c670d8476066decdfaa59318bcc93ae0f38e3a40a1ea4ddf36ccddc0bf7da05f",
                "916593963be5d51c196b5339eef11a785bbb6b808ecb9a2446c4ff36174a2c77",
                "a9ba0ba3eae757dfbc402a560f15e0d0f576022cfd46bdd00ea22b0e8d11d10d",
            ],
        ),
        "H6": (
            "LoRA adapter: name and path in every block's key",
            span(0, 12),
            4,
            ADAPTED,
            "8183646c6f726167616461707465726a2f702f61646170746572",
            [
                "f1be6c037c4b84bab5f9fc1e5199e35e0979d78bc4f73be944082ba0576f7b26",
                "c6f4770bed3aa5cba9eb4236b64138ecf408a2e07dff1652e4b889943992b62b",
                "f916d1af0a844f0a5b1d983c46591ecbb1475ec6ec41f754e6bcd02d2b9c4b44",
            ],
        ),
        "H8": (
            "token ids at the edges of CBOR's integer widths",
            [0, 23, 24, 255, 256, 65535, 65536, 151643],
            4,
            NO_NAMESPACE,
            "840017181818fff6",
            [
                "dc7fbfd287fac7b6243222eb8a406c3a145df86542e11806ae74c52db0f7a8e2",
                "b0cc7356293ff635e256f7b0120d2b249755f0bc63f948804f3da592017522ac",
            ],
        ),
        "H9": (
            "blocks of 16",
            span(0, 32),
            16,
            NO_NAMESPACE,
            "90000102030405060708090a0b0c0d0e0ff6",
            [
                "dc918a88b139e5afe60b88eda27508d4aee16c10fdc354791efea06206ac0749",
                "c300ec275d7bf08af8fc63e76cdc0086911bbc7091e03c5cf892553bef84ef0c",
            ],
        ),
        "H10": (
            "blocks of 32",
            span(0, 64),
            32,
            NO_NAMESPACE,
            "9820",
            [
                "30653d0f357fa985ff3562ec776f5216ffbff896fa64a7fa05860120ecc90928",
                "1287f299a949890703c582a0403983fe4a4b930e183291b7408dbc96217c6c97",
            ],
        ),
        "H11": (
            "equal blocks in other places have other hashes: the chain",
            [0] * 32,
            16,
            NO_NAMESPACE,
            "9000000000000000000000000000000000f6",
            [
                "0480f419d19c55996d123ac46aa06bdfed9b7edf501e18be5ad248202f9ed4c3",
                "1aada145249cdf502110ad8730b87341cf1c1c9a17869531affd32625ea3b59c",
            ],
        ),
    },
)
def test_hash_chain(tokens: list[int], block_size: int, namespace: Namespace, preimage: str, hashes: list[str]) -> None:
    """`preimage`, in hex, is in the bytes hashed for the first block, after the 35 bytes of the parent."""
    cache = HashChainCache(2, block_size)
    assert cache_hashes(cache, tokens, namespace) == hashes
    assert cache_hashes(cache, [*tokens, 5], namespace) == hashes  # a partial block has no hash
    hashed = PREIMAGE(cache.root_hash, tokens[:block_size], extra_keys(namespace, is_first=True))
    assert hashed[:35] == b"\x83\x58\x20" + cache.root_hash
    assert preimage in hashed[35:].hex()


@vector("H7", "an image over two blocks: its offset from the block's start, negative in the second")
def test_image_keys() -> None:
    """Image rows are out of the cache's scope; the block hash takes any extra keys."""
    keys = [(("mm", "imgA", 2),), (("mm", "imgA", -2),), None]
    parent, hashes = sha256_cbor.root(), []
    for index, key in enumerate(keys):
        parent = sha256_cbor(parent, span(4 * index, 4 * index + 4), key)
        hashes.append(parent.hex())
    assert hashes == [
        "80783d1314ac1fd6ee49ebc50a75c0144d02100ff6aeaad6830e3ee0a9988034",
        "b26f601058e5a0360954d4c6476943b1b3f6cddbd230655a454490201545256e",
        "a7d4dded7cf35cb2585b5d4ffa6749b86bac3d4561fb11382e6cf1bb1d1404a4",
    ]


@vector("H12", "all extra keys together, in their fixed order: adapter, image, salt")
def test_order_of_extra_keys() -> None:
    keys = (("lora", "adapter", "/p/adapter"), ("mm", "imgA", 0), ("cache_salt", "tenant-a"))
    expected = "3330a13d03661cc756ed13dfb489e2cb1aa5ec7af62acfc5838d44f4c4928715"
    assert sha256_cbor(sha256_cbor.root(), span(0, 4), keys).hex() == expected
    both = Namespace(adapter=Adapter("adapter", "/p/adapter"), salt="tenant-a")
    assert extra_keys(both, is_first=True) == (keys[0], keys[2])  # the same order without the image


@vector("H16", "a seed given as PYTHONHASHSEED: text, not a number")
@pytest.mark.parametrize(
    ("block_hash", "root"),
    [
        pytest.param(sha256_cbor, "4e1195df020de59e0d65a33a4279f1183e7ae4e5d980e309f8b55adff2e61c3e", id="sha256_cbor"),
        pytest.param(XXHASH_CBOR, "1ebe36576dcb573f26b99533a20aaeca", id="xxhash_cbor"),
    ],
)
def test_root_of_a_seed(block_hash: CborHash, root: str) -> None:
    assert encode("0").hex() == "6130"
    assert block_hash.root("0").hex() == root
    assert HashChainCache(2, block_hash=block_hash, root_seed="0").root_hash.hex() == root


@vector("H17", "a seeded chain, with either digest")
@pytest.mark.parametrize(
    ("block_hash", "hashes"),
    [
        pytest.param(
            sha256_cbor,
            [
                "8d4c7c828f1611f485f1ebfc2b19f0fe1c90d0a71d00cd90948a1fa5e8c9e91f",
                "ed6fa5d37a067707ede9aff44aa2819ab639263ca4ca66e8d36d02ffac952d33",
                "1b7047f472ffe29f9649139ce64bf3c05228f5a99bb7792568bb68f2d7410c30",
            ],
            id="sha256_cbor",
        ),
        pytest.param(
            XXHASH_CBOR,
            [
                "c20df5f86688b63f4cb5a744053f0b61",
                "75c35caf4a74a79326db18216e1df188",
                "ff6d53a64c0eefb0e1c9d5f7544de264",
            ],
            id="xxhash_cbor",
        ),
    ],
)
def test_seeded_chain(block_hash: CborHash, hashes: list[str]) -> None:
    assert cache_hashes(HashChainCache(2, 4, block_hash=block_hash, root_seed="0"), span(0, 12)) == hashes
