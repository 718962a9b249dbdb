"""The only place that calls the `tokenizers` library, which runs the tokenizer.json of strangers in Rust.

A fault in Rust arrives as a panic: a `BaseException` that no `except Exception` catches, and a report of many lines
that Rust writes to standard error itself and that may quote the text. Here both become one `TokenizerFailed`.
"""

import os
import re
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from minicache.common.files import require_end
from minicache.common.packages import package_missing
from minicache.text.errors import TokenizerFailed

T = TypeVar("T")

# Seconds that `encode` may take: many times what a slow machine needs, which encodes 1 MB a second.
PATIENCE, SLOWEST = 20.0, 50_000  # in seconds, and in characters a second
_CHANCE = ("dropout", "alpha", "nbest_size")  # settings of BPE and Unigram that make `encode` random
_CHARSMAP = re.compile(rb'"precompiled_charsmap"\s*:\s*"([A-Za-z0-9+/=]*)"')
_QUOTED = 300  # characters of the library's own message that a sentence repeats


class Backend:
    """The tokenizer in one tokenizer.json, without its `truncation` and `padding`, as transformers uses it: these are
    settings for training. Nor does it choose tokens at random, because a prompt must equal itself.

    `patient`: wait for `encode` as long as it takes. Otherwise it raises `TokenizerFailed` when a regular expression
    of the tokenizer.json is still searching after `PATIENCE` seconds and more for a long text. Rust cannot be
    interrupted, so its thread then keeps running until the process ends: for commands, not for servers.
    """

    def __init__(self, path: Path, *, patient: bool = True) -> None:
        self.path, self._patient = path, patient
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise TokenizerFailed(package_missing("tokenizers", f"the tokenizer {path}")) from None
        with self._errors("is not a tokenizer that the tokenizers library can read"):
            _check_sizes(require_end(path).read_bytes())
            self._tokenizer = Tokenizer.from_file(str(path))
            self._tokenizer.no_truncation()
            self._tokenizer.no_padding()
            model = self._tokenizer.model
            for name in _CHANCE:
                if getattr(model, name, None) is not None:
                    setattr(model, name, None)
            ids = self._tokenizer.get_vocab(with_added_tokens=True).values()
        self.vocab_size = max(ids, default=-1) + 1

    def encode(self, text: str, *, special_tokens: bool) -> Any:
        """The library's `Encoding` of `text`: its `ids`, `offsets` and `special_tokens_mask`."""
        try:
            with self._errors("cannot encode a text"):
                if self._patient:
                    return self._tokenizer.encode(text, add_special_tokens=special_tokens)
                return self._encode_in_time(text, special_tokens)
        except TokenizerFailed:
            _check_encodable(text)  # the library's own words for this do not say what is wrong
            raise

    def decode(self, ids: list[int], *, skip_special_tokens: bool) -> str:
        with self._errors("cannot decode tokens"):
            text: str = self._tokenizer.decode(ids, skip_special_tokens=skip_special_tokens)
        return text

    def id_of(self, token: str) -> int | None:
        """The id of a token in the vocabulary."""
        with self._errors("cannot look up a token"):
            id: int | None = self._tokenizer.token_to_id(token)
        return id

    def normalizer(self) -> bytes | None:
        """The JSON of the normaliser in the tokenizer.json, if it has one."""
        with self._errors("has an unreadable normaliser"):
            normalizer = self._tokenizer.normalizer
            return None if normalizer is None else normalizer.__getstate__()

    def _encode_in_time(self, text: str, special_tokens: bool) -> Any:
        # `encode_batch` lets other threads run while Rust works; `encode` does not.
        limit = PATIENCE + len(text) / SLOWEST
        call = _Call(lambda: self._tokenizer.encode_batch([text], add_special_tokens=special_tokens)[0])
        call.start()
        call.join(limit)
        if call.is_alive():
            raise TimeoutError(f"a text of {len(text):,} characters took more than {limit:.0f} seconds")
        return call.result()

    def _errors(self, what: str) -> AbstractContextManager[None]:
        return library_errors(self.path, what)


@contextmanager
def library_errors(path: Path, what: str) -> Iterator[None]:
    """Raises every failure of the library in this block as `TokenizerFailed`: the file, then `what` is wrong."""
    try:
        with _quiet_panics():
            yield
    except BaseException as error:  # the library raises a bare Exception, and its panics are BaseExceptions
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise  # KeyboardInterrupt, SystemExit
        words = " ".join(str(error).split())[:_QUOTED] or type(error).__name__
        raise TokenizerFailed(f"{path} {what}: {words}", words) from None


class _Call(threading.Thread):
    """A function that runs in a thread of its own, which does not keep the process alive."""

    def __init__(self, function: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._function = function
        self._result: Any = None
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._result = self._function()
        except BaseException as error:
            self._error = error

    def result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._result


@contextmanager
def _quiet_panics() -> Iterator[None]:
    """Keep Rust's report of a panic off standard error, if this is the only thread: what another thread writes there
    must not be lost."""
    if threading.active_count() > 1:
        yield
        return
    try:
        kept = os.dup(2)
    except OSError:  # standard error is closed
        yield
        return
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        os.close(null)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _check_sizes(file: bytes) -> None:
    """Rust ends the process if it cannot get the memory that a normaliser of sentencepiece says it needs: the first
    four bytes are the size of a table that follows."""
    for match in _CHARSMAP.finditer(file) if b"precompiled_charsmap" in file else ():
        table = b64decode(match[1])
        if int.from_bytes(table[:4], "little") > len(table):
            raise ValueError(f"its precompiled_charsmap has {len(table):,} bytes, fewer than it says")


def _check_encodable(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TokenizerFailed(
            f"the text has half of a surrogate pair, {text[error.start]!r}, at character {error.start}, which no "
            "tokenizer can encode: repair the text",
            repr(text[error.start]),
        ) from None
