"""The decoder against transformers, and against itself in other chunks."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from minicache.engine.backends import make_backend
from minicache.engine.fast_cpu import products
from minicache.engine.fast_cpu.products import FEW_ROWS, OneDnnLinear, SlicedRows, linear_for
from minicache.engine.layers import Linear, Rotary, rotate
from minicache.engine.models.loader import load_model
from minicache.engine.models.store import resolve
from tests.engine.small_models import FAMILIES, require_same_logits, run_chunks, small_model, write_model

TOKENS = [(7 * i * i + 3 * i) % 61 for i in range(90)]
DTYPES = (torch.float32, torch.float64)


@pytest.fixture(scope="module")
def transformers():
    return pytest.importorskip("transformers", reason="transformers is the oracle of these tests")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_logits_equal_transformers(family: str, dtype: torch.dtype, tmp_path: Path, transformers) -> None:
    folder = write_model(tmp_path / family, family)
    oracle = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
    with torch.no_grad():
        expected = oracle(torch.tensor([TOKENS])).logits[0]
    assert expected.std() > 0.1, "logits this flat would hide an error"
    for name in ("torch", "fast_cpu"):
        backend = make_backend(name, dtype=dtype)
        model = load_model(folder, dtype, linear=backend.linear)
        model.rows = backend.rows(model)
        found = run_chunks(model, TOKENS, [len(TOKENS)], backend=name)
        require_same_logits(found, expected, model)


@pytest.mark.parametrize("factor", [1.0, -0.5], ids=["a copy", "another matrix"])
@pytest.mark.parametrize("family", ["llama", "qwen3-tied"])
def test_a_tied_folder_that_holds_an_output_matrix(family: str, factor: float, tmp_path: Path, transformers) -> None:
    file = write_model(tmp_path, family) / "model.safetensors"
    tensors = load_file(file)
    save_file(tensors | {"lm_head.weight": factor * tensors["model.embed_tokens.weight"]}, file, {"format": "pt"})
    model = load_model(tmp_path)
    with torch.no_grad():
        oracle = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
        expected = oracle(torch.tensor([TOKENS])).logits[0]
    require_same_logits(run_chunks(model, TOKENS, [len(TOKENS)]), expected, model)
    assert (model.lm_head.weight is model.embedding) == (factor == 1), "a copy takes no memory"


def test_scaled_rotary_embeddings_matter() -> None:
    plain, scaled = (run_chunks(small_model(family), TOKENS, [90]) for family in ("llama", "llama3"))
    assert (plain - scaled).abs().max() > 0.01


@pytest.mark.model
def test_smollm2_logits_equal_transformers(transformers) -> None:
    folder = resolve("smollm2")
    oracle = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokens = tokenizer.encode("You are a support bot. It is 14:03:22. Where is my parcel? " * 3)
    with torch.no_grad():
        expected = oracle(torch.tensor([tokens])).logits[0]
    del oracle  # half a gigabyte
    model = load_model(folder)
    require_same_logits(run_chunks(model, tokens, [len(tokens)], block_size=16), expected, model)


@given(
    data=st.data(),
    family=st.sampled_from(sorted(FAMILIES)),
    block_size=st.sampled_from([1, 4, 16]),
    backend=st.sampled_from(["torch", "fast_cpu"]),
)
def test_chunks_do_not_change_logits(data: st.DataObject, family: str, block_size: int, backend: str) -> None:
    tokens = TOKENS[: data.draw(st.integers(2, 40))]
    chunks, left = [], len(tokens)
    while left:
        chunks.append(data.draw(st.integers(1, left)))
        left -= chunks[-1]
    model = small_model(family)
    whole = run_chunks(model, tokens, [len(tokens)], block_size)
    torch.testing.assert_close(run_chunks(model, tokens, chunks, block_size, backend), whole, rtol=0, atol=1e-9)


@pytest.mark.parametrize("rows", [0, 1, 2, 8, 16, 17])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("fast", [False, True])
def test_a_linear_layer_is_a_product(rows: int, dtype: torch.dtype, biased: bool, fast: bool) -> None:
    generator = torch.Generator().manual_seed(rows)
    weight, bias = torch.randn(35, 22, generator=generator), torch.randn(35, generator=generator)
    x = torch.randn(rows, 22, generator=generator)
    expected = x.double() @ weight.double().T + (bias.double() if biased else 0)
    make = linear_for(torch.device("cpu"), dtype) if fast else Linear
    layer = make(weight.to(dtype), bias.to(dtype) if biased else None)
    # Of a sum of n products in any order: at most n roundings, each of the sum of their sizes.
    sizes = x.double().abs() @ weight.double().abs().T + bias.double().abs()
    assert ((layer(x.to(dtype)).double() - expected).abs() <= 23 * torch.finfo(dtype).eps * sizes).all()
    if isinstance(layer, OneDnnLinear):
        assert (layer._packed is not None) == (rows in FEW_ROWS)


@pytest.mark.parametrize("rows", [1, 3, 5])
def test_any_number_of_rows_may_be_multiplied_at_once(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, calls = small_model(), []
    whole = run_chunks(model, TOKENS[:9], [9], 4)
    monkeypatch.setattr(products, "ROWS_AT_ONCE", rows)
    model.rows, norm = SlicedRows(), model.norm
    model.norm = lambda x: calls.append(len(x)) or norm(x)  # type: ignore[assignment]
    torch.testing.assert_close(run_chunks(model, TOKENS[:9], [9], 4), whole, rtol=0, atol=1e-12)
    assert calls == [rows] * (9 // rows) + [9 % rows] * (9 % rows > 0)


def test_a_float64_model_rotates_in_float64() -> None:
    config = small_model().config
    half = config.head_dim // 2
    cos, sin = Rotary(config, 512, torch.float64, torch.device("cpu")).at(torch.tensor([0, 300]))
    ahead = torch.cat((torch.ones(half), torch.zeros(half))).double()  # each pair points along its first axis
    turned = rotate(ahead.expand(2, 1, -1), cos, sin)
    angles = 300 / config.rope_theta ** (torch.arange(0, config.head_dim, 2).double() / config.head_dim)
    expected = torch.stack((ahead, torch.cat((angles.cos(), angles.sin()))))
    torch.testing.assert_close(turned[:, 0], expected, rtol=0, atol=1e-12)
