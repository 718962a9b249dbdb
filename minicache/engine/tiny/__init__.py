"""`tiny`: a model of about a million parameters that knows one subject, prefix caching.

    corpus/    the text it learns from, all of it written for this purpose; not part of the installed package
    corpus.py  draws training documents from it
    decoder.py the model as it is trained
    train.py   `python -m minicache.engine.tiny.train` trains it and writes
    model/     the model: a Hugging Face folder of 2 MB

One byte is one token, so that every example can be counted by hand. Importing this package imports no torch.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minicache.engine.tiny.byte_level import byte_letters, byte_tokenizer
    from minicache.engine.tiny.folder import CONFIG, write_tiny
    from minicache.engine.tiny.random_model import random_weights

__all__ = ["CONFIG", "TINY_FOLDER", "byte_letters", "byte_tokenizer", "random_weights", "write_tiny"]

TINY_FOLDER = Path(__file__).parent / "model"
_HOMES = {
    "CONFIG": "folder",
    "byte_letters": "byte_level",
    "byte_tokenizer": "byte_level",
    "random_weights": "random_model",
    "write_tiny": "folder",
}


def __getattr__(name: str) -> Any:
    """The names above that need torch or tokenizers, imported when they are first asked for."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
