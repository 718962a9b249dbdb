"""In exact mode a cache hit changes nothing, bit for bit.

Law: every logit has the same bits as in a cold run without a cache, for every hit and every way to cut a prompt into
chunks, alone or in a batch, also after a preemption, in float64, float32 and bfloat16, with a Llama-like and a
Qwen3-like model. Keys and values written by decode have the same bits as those written by prefill.

The law is not empty: without exact mode, in float32, the bits differ.
"""

from collections import Counter
from itertools import product

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch.overrides import TorchFunctionMode

from minicache.core import HashChainCache, SchedulerConfig, StepPlan
from minicache.engine import SamplingParams
from minicache.engine.backends import make_backend
from minicache.engine.exact import STACKS, TileAttention, can_stack, cut
from minicache.engine.model import Model
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

DTYPES = (torch.float64, torch.float32, torch.bfloat16)


@pytest.fixture(scope="module", params=[(f, d) for f in ("llama", "qwen3") for d in DTYPES], ids=str)
def plain(request: pytest.FixtureRequest) -> Model:
    return model(*request.param)


@pytest.fixture(scope="module", params=[True, False], ids=["stacked", "tile by tile"])
def exact(request: pytest.FixtureRequest, plain: Model) -> Model:
    return exact_model(plain, stacked=None if request.param else False)  # None: as this machine allows


def test_every_way_to_the_same_logits(exact: Model) -> None:
    cold = cold_run(exact, prompts(), TileAttention())
    seen: Counter[str] = Counter()
    for number, (block_size, chunk) in enumerate(product((1, 4, 16), (7, 64))):
        make, config = list(ways(block_size, chunk, room=-(-48 // block_size) + 3))[number % 3]
        ours = serve(prompts(), make, config, model=exact, attention=TileAttention())
        assert_same_bits(ours, cold)
        seen.update(ours.seen)
    require(seen, "hits", "evictions", "preemptions")


@pytest.mark.nightly
def test_every_way_with_every_size_to_the_same_logits(exact: Model) -> None:
    cold = cold_run(exact, prompts(), TileAttention())
    for block_size, chunk in product((1, 4, 16), (7, 64)):
        for make, config in ways(block_size, chunk, room=-(-48 // block_size) + 3):
            ours = serve(prompts(), make, config, model=exact, attention=TileAttention())
            assert_same_bits(ours, cold)


@given(data=st.data())
def test_decode_writes_what_prefill_writes(exact: Model, data: st.DataObject) -> None:
    tokens = torch.tensor(data.draw(st.lists(st.integers(0, VOCABULARY - 1), min_size=2, max_size=40)))
    chunks, left = [], len(tokens)
    while left:
        chunks.append(data.draw(st.integers(1, left)))
        left -= chunks[-1]
    size = data.draw(st.sampled_from([1, 4, 16]))
    table = data.draw(st.permutations(range(1, 2 + len(tokens) // size)))
    at_once = keys_and_values(exact, tokens, [len(tokens)], list(range(1, 2 + len(tokens) // 4)), 4)
    one_by_one = keys_and_values(exact, tokens, chunks, table, size)
    for a, b in zip(at_once, one_by_one, strict=True):
        assert torch.equal(a, b)


class Shapes(TorchFunctionMode):
    """Notes the shapes of every product, reduction and softmax."""

    SUMS = frozenset({"linear", "matmul", "__matmul__", "softmax", "mean"})

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[tuple[object, ...]] = set()

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        if (name := getattr(func, "__name__", "")) in self.SUMS:
            self.seen.add((name, *(tuple(each.shape) for each in args if isinstance(each, torch.Tensor))))
        return func(*args, **(kwargs or {}))


@given(chunks=st.lists(st.integers(1, 20), min_size=2, max_size=5), size=st.sampled_from([1, 4, 16]))
@example(chunks=[7, 20, 3], size=4)
def test_shapes_depend_on_position_alone(chunks: list[int], size: int) -> None:
    """This test finds a shape that depends on the chunk even if this machine happens to round both shapes equally."""
    exact = exact_model(model("llama", torch.float32), stacked=False)
    tokens = torch.arange(sum(chunks)) % VOCABULARY
    table = list(range(1, 2 + len(tokens) // size))
    shapes = []
    for pieces in ([len(tokens)], chunks):
        with Shapes() as noted:
            keys_and_values(exact, tokens, pieces, table, size)
        shapes.append(noted.seen)
    assert {"linear", "softmax", "mean"} <= {name for name, *_ in shapes[0]}
    assert shapes[1] == shapes[0]


def test_without_exact_mode_the_bits_differ() -> None:
    """In float32 a hit, or a different chunk size, changes the shapes of the products and with them the rounding."""
    fast = model("llama", torch.float32)
    warm = serve(prompts(), lambda events: HashChainCache(400, 16, events=events), SchedulerConfig.vllm(), model=fast)
    assert different_rows(warm, cold_run(fast, prompts()))


def test_how_many_tiles_are_one_product() -> None:
    assert list(cut(64 + 32 + 5, STACKS)) == [64, 32, 4, 1]
    assert list(cut(3, (1,))) == [1, 1, 1]
    for number in range(1, 300):
        assert sum(cut(number, STACKS)) == number


def test_a_machine_on_which_tiles_cannot_be_stacked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The start-up check detects a product whose rounding depends on its number of rows."""

    def uneven(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        return product(rows, weight, bias) * (1 + 1e-7 * (len(rows) == STACKS[2] * 16))

    product = torch.nn.functional.linear
    fast = model("llama", torch.float64)
    assert can_stack(fast)
    monkeypatch.setattr("torch.nn.functional.linear", uneven)
    assert not can_stack(fast)
    assert not make_backend("torch", exact_tile=16).rows(fast).stacked


@pytest.mark.model
@pytest.mark.nightly
def test_smollm2_answers_with_the_same_bits_after_a_hit() -> None:
    """The real model, short prompts: cold without a cache, warm with either."""
    from minicache.engine import Engine

    system = "You are the support bot of a shop for walking and cycling gear. Answer in one friendly sentence. "
    texts = [system + "Where is my parcel?", system + "Can I send it back?"]

    def answers(cache: str) -> list[torch.Tensor]:
        engine = Engine(model="smollm2", cache=cache, num_blocks=200, exact=True)
        seen: list[torch.Tensor] = []
        inner = engine.runner.logits

        def recorded(plan: StepPlan, hidden: torch.Tensor) -> torch.Tensor:
            seen.append(inner(plan, hidden))
            return seen[-1]

        engine.runner.logits = recorded  # type: ignore[method-assign]
        outputs = [engine.generate([text], SamplingParams(max_tokens=3))[0] for text in (*texts, *texts)]
        assert (sum(output.cached_tokens or 0 for output in outputs) > 0) == (cache != "none")
        return seen

    cold = answers("none")
    for cache in ("hash", "radix"):
        for ours, theirs in zip(answers(cache), cold, strict=True):
            assert torch.equal(ours, theirs)
