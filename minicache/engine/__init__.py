"""The engine: real tokens from a real model on a paged KV cache.

    engine.py        Engine: submit, step, collect           what a program uses
    model_runner.py  ModelRunner: a step plan to tokens
    model.py         the decoder                             what the numbers are
    attention.py     attention over block tables
    kv_cache.py      KVCache: the blocks themselves
    sampler.py       logits to a token, as SamplingParams ask
    output.py        RequestOutput: tokens, text, log-probabilities
    loader.py        folders to a model                      where weights come from
    model_store.py   names to folders

Importing this package imports no torch: the names below are loaded when they are first used.
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
