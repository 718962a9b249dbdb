"""A prompt: a payload, its text and its tokens. Each step is computed when it is first needed."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from minicache.prompts.reuse import common_prefix, joined
from minicache.prompts.values import Change, edited_at, with_value
from minicache.text.byte_tokenizer import PlainByteTokenizer
from minicache.text.chat import Chat
from minicache.text.origin import Field, Path, Rendered, Runs
from minicache.text.renderer import Renderer
from minicache.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Source:
    """Everything that a rendering depends on: a payload and a time. `logged_time`: the time comes from the log."""

    payload: dict[str, Any]
    time: datetime | None = None
    logged_time: bool = True

    def with_value(self, path: Path, value: Any) -> "Source":
        """A copy with `value` at `path` of the payload (see `values.with_value`)."""
        return replace(self, payload=with_value(self.payload, path, value))

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of the payload; empty for a completion."""
        found: list[dict[str, Any]] = self.payload.get("messages", [])
        return found


@dataclass(frozen=True, slots=True)
class Means:
    """A tokenizer and a renderer, which turn payloads into tokens. Completions need no renderer."""

    tokenizer: Tokenizer
    renderer: Renderer | None = None

    def text(self, source: Source) -> str:
        """The text of the prompt. Raises as `Renderer.render` does."""
        raw: str | None = source.payload.get("prompt")
        if raw is not None:
            return raw
        assert self.renderer is not None
        return self.renderer.render(_chat(source))

    def rendered(self, source: Source) -> Rendered:
        """The text of the prompt with the origin of each character. Raises as `Renderer.render_with_origins` does."""
        raw = source.payload.get("prompt")
        if raw is not None:
            return Rendered(raw, Runs(array("Q", [0] if raw else []), [Field(("prompt",), 0)] if raw else [], len(raw)))
        assert self.renderer is not None
        return self.renderer.render_with_origins(_chat(source))


def _chat(source: Source) -> Chat:
    payload = source.payload
    return Chat(
        payload["messages"],
        payload["tools"],
        payload["documents"],
        payload["add_generation_prompt"],
        payload["template_kwargs"],
        source.time,
    )


class Prompt:
    """One source with its text, origins and tokens.

    `logged` are the token ids of the prompt in the log. Without them the tokens are `lead`, the tokens that the server
    puts before every prompt, and then the encoded text.
    """

    def __init__(
        self, source: Source, means: Means, *, logged: Sequence[int] | None = None, lead: Sequence[int] = ()
    ) -> None:
        self.source, self.means, self.logged, self.lead = source, means, logged, list(lead)
        self._before: Prompt | None = None  # the prompt before an edit; kept until the origins are computed

    def edited(self, source: Source) -> "Prompt":
        """The prompt of `source`, an edit of this prompt's source. It has no logged tokens."""
        edited = Prompt(source, self.means, lead=self.lead)
        edited._before = self
        return edited

    @cached_property
    def text(self) -> str:
        return self.means.text(self.source)

    @cached_property
    def rendered(self) -> Rendered:
        before, self._before = self._before, None
        known = None if before is None or "rendered" not in before.__dict__ else self._carried_over(before)
        return known or self.means.rendered(self.source)

    def _carried_over(self, before: "Prompt") -> Rendered | None:
        """The origins of the prompt before the edit, adapted. `None` unless the edit changed one text and the template
        wrote this text once, unchanged. Why? Rendering with origins is many times slower than without."""
        match edited_at(before.source.payload, self.source.payload):
            case Change(path, str(old), str(new)) if old and new:
                resized = before.rendered.runs.resized(path, len(old), len(new))
                if resized is not None and self._is_spliced(before, resized[0], old, new):
                    return Rendered(self.text, resized[1])
        return None

    def _is_spliced(self, before: "Prompt", start: int, old: str, new: str) -> bool:
        """Whether this text is the text of `before` with `new` in place of `old` at `start`."""
        ends = start + len(new), start + len(old)
        rest = len(self.text) - ends[0]
        return (
            rest == len(before.text) - ends[1]
            and self.text.startswith(new, start)
            and common_prefix(self.text, before.text) >= start
            and common_prefix(self.text, before.text, *ends) == rest
        )

    @cached_property
    def encoded(self) -> Sequence[int]:
        return joined(self.lead, self.encode(self.text)) if self.lead else self.encode(self.text)

    @cached_property
    def tokens(self) -> Sequence[int]:
        return self.encoded if self.logged is None else self.logged

    @property
    def hides(self) -> bool:
        """Whether different texts can have equal tokens, because the tokenizer normalises text."""
        return self.means.tokenizer.normalizer is not None

    def encode(self, text: str) -> Sequence[int]:
        """The token ids of `text`, as bytes if every id is one byte: bytes are compared fastest."""
        tokenizer = self.means.tokenizer
        if isinstance(tokenizer, PlainByteTokenizer):
            return tokenizer.encode_to_bytes(text)
        return tokenizer.encode(text)
