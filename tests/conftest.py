"""Settings of every test: hypothesis profiles, one thread per process, and what to do without the real model."""

import os
import sys

# Tiny products on two spinning OpenMP threads run many times slower than on one. Read when torch loads.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import pytest
from hypothesis import HealthCheck, Phase, settings

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("dev", max_examples=25, deadline=None, suppress_health_check=QUIET)
settings.register_profile("ci", max_examples=100, deadline=None, suppress_health_check=QUIET, derandomize=True)
settings.register_profile("nightly", max_examples=2000, deadline=None, suppress_health_check=QUIET)
# A mutant is killed by the first example that fails: making that example small takes minutes, and nobody reads it.
settings.register_profile(
    "mutants",
    settings.get_profile("ci"),
    phases=[phase for phase in Phase if phase not in (Phase.shrink, Phase.explain)],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


def _smollm2_is_in_the_store() -> bool:
    from minicache.engine.models import store as model_store

    return model_store.is_stored("smollm2")


def _cuda_works() -> bool:
    import torch

    return torch.cuda.is_available()


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
