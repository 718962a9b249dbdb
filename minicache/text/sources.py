"""Tokenizers and templates by name: `bytes`, `chatml`, a path, a model in the store, or a model on the Hugging Face
hub."""

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from textwrap import shorten

from minicache.common.files import existing
from minicache.common.packages import package_missing
from minicache.core.errors import MinicacheError
from minicache.text.budget import SECONDS
from minicache.text.byte_tokenizer import PlainByteTokenizer
from minicache.text.errors import TemplateFailed, TokenizerFailed
from minicache.text.store import models_folder
from minicache.text.template import CHATML, ChatTemplate, read_template
from minicache.text.tokenizer import HubTokenizer, Tokenizer

BYTES, CHATML_NAME = "bytes", "chatml"
_TINY_FOLDER = Path(__file__).parent.parent / "engine" / "tiny" / "model"  # data, not code: a name of the store
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_HUB_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "config.json", "generation_config.json")


def open_tokenizer(name: str | Path, *, special_tokens: bool = False, patient: bool = True) -> Tokenizer:
    """The tokenizer called `name`. Raises `TokenizerFailed`, which lists the possible names.

    `special_tokens`: `encode` adds the tokens that this tokenizer puts around every text, such as a first token.
    `patient` is as for `tokenizers_library.Backend`.
    """
    if str(name) == BYTES:
        return PlainByteTokenizer()
    path = existing(name)
    known = f"give {BYTES}, a folder or a tokenizer.json, a model in the store, or ORG/NAME as on the hub"
    unknown = TokenizerFailed(f"unknown tokenizer {str(name)!r}: {known}")
    where = path if path and path.is_file() else _folder(str(name), unknown, "tokenizer.json")
    return HubTokenizer(where, special_tokens=special_tokens, patient=patient)


def open_template(
    name: str | Path, *, now: Callable[[], datetime] = datetime.now, seconds: float = SECONDS
) -> ChatTemplate:
    """The chat template called `name`: `chatml`, the file of a template, or a model folder that holds one. `seconds` is
    as for `ChatTemplate`.

    Raises `TemplateFailed`, or `TokenizerFailed` if the files cannot be fetched from the hub.
    """
    if str(name) == CHATML_NAME:
        return ChatTemplate(CHATML, now=now, seconds=seconds)
    path = existing(name)
    if path and path.is_file():
        if path.suffix != ".json":
            return ChatTemplate(read_template(path), now=now, seconds=seconds)
        path = path.parent
    elif path is None or not path.is_dir():
        known = (
            f"give {CHATML_NAME}, the template's file, a model folder, a model in the store, or ORG/NAME as on the hub"
        )
        unknown = TemplateFailed(f"unknown template {str(name)!r}: {known}")
        path = _folder(str(name), unknown, "template")
    return ChatTemplate.from_folder(path, now=now, seconds=seconds)


def _folder(name: str, unknown: MinicacheError, needed: str) -> Path:
    """The folder of the model called `name`: in the store, on this machine, or fetched from the hub. Raises `unknown`
    if there is no such model."""
    if name == "tiny":
        return _TINY_FOLDER
    for folder in (existing(models_folder() / name.replace("/", "--")), existing(name)):
        if folder and folder.is_dir():
            return folder
    if _HUB_NAME.fullmatch(name):
        return _from_hub(name, needed)
    raise unknown


def _from_hub(name: str, needed: str) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise TokenizerFailed(
            package_missing("huggingface_hub", f"fetching {name} from the Hugging Face hub")
        ) from None
    try:
        return Path(snapshot_download(name, allow_patterns=list(_HUB_FILES)))
    except Exception as error:  # the hub's, requests' and the system's errors have no common base
        reason = shorten(str(error), 200, placeholder=" …") or type(error).__name__
        raise TokenizerFailed(f"cannot fetch the {needed} of {name} from the Hugging Face hub: {reason}") from None
