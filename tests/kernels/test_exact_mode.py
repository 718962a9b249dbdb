"""In exact mode a cache hit changes nothing, bit for bit, on Triton: see `tests/properties/engine/test_exact_mode.py`.

The kernels run interpreted, which rounds as the CPU's products do. Whether a row meets the same tiles of keys in the
same order, from the same place of its own tile, is the same there as on a GPU; whether the GPU's products then have the
same bits is checked by `tests/gpu`.
"""

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minicache.core.errors import InvalidArgument
from minicache.engine import Engine, EngineConfig, SamplingParams
from minicache.engine.attention import Batch
from minicache.engine.backends import make_backend
from minicache.engine.kernels import compiled, paged_attention, paged_decode
from minicache.engine.kernels.launch import Geometry
from minicache.engine.kernels.layout import Layout
from minicache.engine.kernels.triton_attention import TritonAttention
from minicache.engine.model import Model
from tests.engine.small_models import write_model
from tests.kernels.cases import make
from tests.properties.exactness import (
    assert_same_bits,
    cold_run,
    different_rows,
    exact_model,
    keys_and_values,
    model,
    prompts,
    ways,
)
from tests.properties.serving import VOCABULARY, require, serve

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
QUICK = (("llama", torch.float32), ("qwen3", torch.bfloat16))
MODELS = [
    pytest.param(each, marks=() if each in QUICK else pytest.mark.nightly)
    for each in product(("llama", "qwen3"), DTYPES)
]
SMALL = {"num_attention_heads": 3, "num_key_value_heads": 1}  # each head of keys is a program to interpret
ASKED = prompts(cuts=(33, 16, 33), max_tokens=3)


@pytest.fixture(autouse=True)
def small_tiles_of_keys_on_a_large_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several tiles of keys in a short context, and fast mode would split it: what could differ, does."""
    for kernel in (paged_attention, paged_decode):
        monkeypatch.setattr(kernel, "keys_of", lambda geometry: 16)
    monkeypatch.setattr("minicache.engine.kernels.triton_attention.processors", lambda device: 100)
    monkeypatch.setattr("minicache.engine.kernels.paged_decode.SHORTEST_SPLIT", 2)


@pytest.fixture(scope="module", params=MODELS, ids=str)
def exact(request: pytest.FixtureRequest) -> Model:
    return exact_model(model(*request.param, **SMALL))


def attention() -> TritonAttention:
    found = make_backend("triton", exact_tile=16).attention
    assert isinstance(found, TritonAttention)
    return found


def test_every_way_to_the_same_logits(exact: Model) -> None:
    cold = cold_run(exact, ASKED, attention())
    seen: Counter[str] = Counter()
    for block_size, chunk, way in ((1, 7, 2), (4, 64, 0), (16, 7, 1)):
        make, config = list(ways(block_size, chunk, room=-(-40 // block_size) + 1))[way]
        ours = serve(ASKED, make, config, model=exact, attention=attention())
        assert_same_bits(ours, cold)
        seen.update(ours.seen)
    require(seen, "hits", "evictions", "preemptions")


@settings(max_examples=3)
@given(data=st.data())
def test_decode_writes_what_prefill_writes(exact: Model, data: st.DataObject) -> None:
    tokens = torch.tensor(data.draw(st.lists(st.integers(0, VOCABULARY - 1), min_size=18, max_size=36)))
    first = data.draw(st.integers(1, len(tokens) - 4))
    chunks = [first, len(tokens) - 3 - first, 1, 1, 1]
    size = data.draw(st.sampled_from([1, 4, 16]))
    table = data.draw(st.permutations(range(1, 2 + len(tokens) // size)))
    at_once = keys_and_values(exact, tokens, [len(tokens)], list(range(1, 2 + len(tokens) // 4)), 4, attention())
    in_pieces = keys_and_values(exact, tokens, chunks, table, size, attention())
    for a, b in zip(at_once, in_pieces, strict=True):
        assert torch.equal(a, b)


def test_without_exact_mode_the_bits_differ() -> None:
    """The same layers over the same kernels, but in tiles and splits that suit the batch."""
    fast = exact_model(model("llama", torch.float32, **SMALL))
    cold = cold_run(fast, ASKED, TritonAttention())
    make, config = next(ways(4, 64, room=11))
    assert different_rows(serve(ASKED, make, config, model=fast, attention=TritonAttention()), cold)


@pytest.mark.parametrize(("group", "rows", "queries"), [(1, 64, 16), (3, 64, 16), (4, 64, 16), (7, 64, 8), (3, 16, 4)])
def test_queries_of_a_tile(group: int, rows: int, queries: int) -> None:
    """A tile of 16 positions, or the part of it that R rows hold: none reaches over a multiple of 16."""
    geometry = Geometry(torch.float16, 2, group, 64, 16)
    assert paged_attention.queries_of(geometry, rows, 16) == queries
    assert paged_attention.queries_of(geometry, rows, None) == rows // group


@pytest.mark.parametrize(("tile", "queries"), [(1, 1), (8, 8), (24, 8), (32, 16)])
def test_other_tiles_of_positions(tile: int, queries: int) -> None:
    assert paged_attention.queries_of(Geometry(torch.float16, 2, 4, 64, 16), 64, tile) == queries


@given(st.integers(0, 40), st.lists(st.integers(1, 20), min_size=1, max_size=4), st.sampled_from([1, 4, 16]))
def test_where_a_row_stands_in_its_tile_depends_on_its_position_alone(
    start: int, chunks: list[int], queries: int
) -> None:
    for num_rows in chunks:
        batch = Batch.build([(0, 3, range(1, 9)), (start, num_rows, range(1, 200))], 16)
        placed = {}
        for sequence, first in Layout.of(batch).tiles(queries, aligned=True).tolist():
            rows = [first + i for i in range(queries) if 0 <= first + i < batch.sequences[sequence].num_rows]
            assert rows, "a tile without rows"
            for row in rows:
                position = batch.sequences[sequence].start + row
                assert placed.setdefault((sequence, position), row - first) == position % queries
        assert len(placed) == 3 + num_rows
        start += num_rows


def test_the_tiles_are_right_too() -> None:
    """Bits that are the same could be the same wrong ones."""
    case = make([(13, 9), (5, 1), (0, 40)], 4, torch.float64, group=3)
    case.require_close(paged_attention.paged_attention(*case.inputs, exact_tile=16))


def test_an_engine_in_exact_mode(tmp_path: Path) -> None:
    """Cold without a cache, and warm: the same bits, by the same kernel for prompts and for decodes."""
    folder = write_model(tmp_path / "model", num_hidden_layers=1)
    stem = [5, 17, 3, 44, 8, 21, 60, 2, 33, 9, 1, 7, 50, 12, 41, 30, 22, 11]
    logits = []
    for cache in ("none", "hash", "radix"):
        engine = Engine(model=folder, cache=cache, block_size=4, num_blocks=24, exact=True, attention="triton")
        assert isinstance(engine.runner.attention, TritonAttention)
        assert engine.runner.attention.exact_tile == 16
        seen: list[torch.Tensor] = []
        whole = engine.runner.logits
        engine.runner.logits = lambda *args, whole=whole, seen=seen: seen.append(whole(*args)) or seen[-1]
        params = SamplingParams(max_tokens=3, ignore_eos=True)
        answers = [engine.generate([[*stem, tail]], params)[0] for tail in (1, 2)]
        assert [answer.cached_tokens for answer in answers] == [0, {"none": 0, "hash": 16, "radix": 16}[cache]]
        logits.append(torch.cat(seen))
    assert torch.equal(logits[0], logits[1])
    assert torch.equal(logits[0], logits[2])


def test_which_attention_exact_mode_has() -> None:
    with pytest.raises(InvalidArgument, match="exact mode runs on attention torch or triton, not 'reference'"):
        Engine(model="tiny", exact=True, attention="reference")
    assert EngineConfig(exact=True).effective_attention == "torch"
    assert EngineConfig(exact=True, device="cuda").effective_attention == "triton"
    assert EngineConfig(exact=True, device="cuda", dtype="float64").effective_attention == "torch"


def test_exact_mode_runs_programs_that_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """`minicache kernels check` compiles what exact mode launches: the program for prompts, where G divides R."""
    monkeypatch.undo()
    for program in compiled.programs(kernels=["paged_attention prompt"]):
        _, constants, options = compiled._launch_of(program)
        geometry = Geometry(getattr(torch, program.dtype), compiled.KV_HEADS, compiled.GROUP, program.head_size, 16)
        rows = paged_attention.rows_of(geometry, decode=False)
        queries = paged_attention.queries_of(geometry, rows, 16)
        assert constants == paged_attention.constants_of(geometry, rows, queries)
        assert options == paged_attention.threads_of(geometry, rows)
        assert options["enable_fp_fusion"] is True


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_what_is_launched_depends_on_the_model_alone(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    """Constants and threads of a decode, a chunk and a batch of both; and their tiles are cut by position."""
    launched: list[dict[str, Any]] = []

    class Kernel:
        def __getitem__(self, grid: tuple[int, ...]) -> "Kernel":
            return self

        def __call__(self, *args: Any, **constants: Any) -> None:
            launched.append(constants)
            spans, tiles = args[5:7]
            assert not ((spans[tiles[:, 0].long(), 2] + tiles[:, 1]) % constants["QUERIES"]).any()

    monkeypatch.setattr(paged_attention, "paged_attention_kernel", Kernel())
    monkeypatch.setattr(paged_attention, "require_runnable", lambda *_: None)
    monkeypatch.setattr(paged_attention, "operand", lambda kernel, dtype: dtype)
    for chunks in ([(20, 1)], [(20, 9)], [(20, 1), (3, 9)]):
        case = make(chunks, 4, getattr(torch, dtype), group=3)
        paged_attention.paged_attention(*case.inputs, exact_tile=16)
    assert launched[0] == launched[1] == launched[2]
    assert launched[0]["QUERIES"] == (4 if dtype == "float32" else 16)
