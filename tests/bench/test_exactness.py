"""The exactness experiment counts what differs, and exact mode never does."""

import json

from minicache.bench import exactness
from minicache.bench.conditions import Conditions
from minicache.bench.exactness import Exactness, sentence


def test_exact_mode_has_no_different_bit() -> None:
    result = Exactness("tiny", prompts=2, system_tokens=60, max_tokens=3).run()
    assert result.holds
    assert [(arm.dtype, arm.exact) for arm in result.arms] == [
        (dtype, exact) for dtype in exactness.DTYPES for exact in (False, True)
    ]
    assert list(result.stacked) == list(exactness.DTYPES)
    assert all(arm.requests == 2 and arm.prefill_ms > 0 for arm in result.arms)
    assert "in exact mode it changes 0 in any format" in sentence(result)
    value = json.loads(json.dumps(result.to_json()))
    assert (value["experiment"], value["dtype"]) == ("exactness", list(exactness.DTYPES))
    assert "cpu, float64, float32, bfloat16" in str(result.conditions)


def test_a_difference_is_counted() -> None:
    import torch

    cold = exactness.Answer((1, 2), [torch.zeros(3), torch.zeros(3)], 1.0, 1.0)
    flipped = exactness.Answer((1, 3), [torch.zeros(3), torch.tensor([0.0, 0.0, 0.5])], 1.0, 1.0)
    arm = exactness._compare("float32", True, [(cold, cold), (cold, flipped)])
    assert (arm.different, arm.flipped, arm.largest_difference) == (1, 1, 0.5)
    assert not exactness.Found([arm], {"float32": True}, None).holds  # type: ignore[arg-type]


def test_conditions_are_those_of_the_engine() -> None:
    """Not of a default: the device and the number format are read from the KV cache."""
    from minicache.engine import Engine

    for dtype in ("float32", "bfloat16"):
        conditions = Conditions.of(Engine(model="tiny", dtype=dtype, num_blocks=2), 0.0)
        assert (conditions.model, conditions.dtype, conditions.device) == ("tiny", dtype, "cpu")
        assert f"cpu, {dtype}, " in str(conditions)
