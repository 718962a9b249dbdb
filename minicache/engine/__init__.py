"""The engine: real tokens from a real model on a paged KV cache.

    engine.py         Engine: submit, step, collect            the front door
    engine_config.py  EngineConfig, from which build.py makes the parts
    intake.py         checks prompts and SamplingParams (sampling_params.py)
    answers.py        RequestOutput: tokens, text, log-probabilities
    model_runner.py   ModelRunner: a step plan to tokens
    model.py          the decoder, of layers.py and model_config.py
    attention.py      attention over block tables, as its formula
    kv_cache.py       KVCache: the memory of the blocks
    sampler.py        logits to a token, as SamplingParams ask

    backends.py       ways to run a model: attention.py, fast_cpu/, kernels/ (Triton), exact.py
    models/           names to folders, folders to a Model
    tiny/             the model that comes with minicache

Importing this package imports no torch: the names below are loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minicache.engine.answers import RequestOutput
    from minicache.engine.engine import Engine
    from minicache.engine.engine_config import EngineConfig
    from minicache.engine.sampling_params import SamplingParams

__all__ = ["Engine", "EngineConfig", "RequestOutput", "SamplingParams"]

_HOME = {
    "Engine": "engine",
    "EngineConfig": "engine_config",
    "RequestOutput": "answers",
    "SamplingParams": "sampling_params",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
