"""Settings of every test: hypothesis profiles, one thread per process, and what to do without the real model."""

import gc
import os
import sys
from pathlib import Path

# Tiny products on two spinning OpenMP threads run many times slower than on one. Read when torch loads.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# How often a second the terminal UI draws what changed. Tests wait for the next frame. Read when Textual loads.
os.environ.setdefault("TEXTUAL_FPS", "1000")

import pytest
from hypothesis import HealthCheck, Phase, settings

# The same examples in every run, so that a run says the same on every machine; `nightly` looks for others.
COMMON = settings(
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("test", COMMON, max_examples=25)
settings.register_profile("quick", COMMON, max_examples=10)
settings.register_profile("nightly", COMMON, max_examples=300, derandomize=False)
# A mutant must die by the fixed cases, and also by a search. The first case that fails kills it: shrinking this case
# would take minutes for no reader.
settings.register_profile("fixed", COMMON, phases=[Phase.explicit])
settings.register_profile("search", COMMON, max_examples=100, phases=[Phase.generate])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "test"))


def _smollm2_is_in_the_store() -> bool:
    from minicache.engine.models import store as model_store

    return model_store.is_stored("smollm2")


def _cuda_works() -> bool:
    import torch

    return torch.cuda.is_available()


def pytest_collection_finish() -> None:
    """What all tests import stays: the garbage collector need not walk it in each of them."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    if item.get_closest_marker("model") and not _smollm2_is_in_the_store():
        reason = "smollm2 is not in the store: minicache model pull smollm2"
        if os.environ.get("MINICACHE_REQUIRE_MODEL"):
            pytest.fail(reason)
        pytest.skip(reason)
    if item.get_closest_marker("gpu") and not _cuda_works():
        pytest.skip("no CUDA device on this machine")


@pytest.fixture(scope="session")
def qwen3() -> Path:
    """The folder with the tokenizer and the template of Qwen3."""
    from tests.qwen3 import CannotFetch, fetch

    try:
        return fetch()
    except CannotFetch as error:
        pytest.skip(str(error))
