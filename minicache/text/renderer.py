"""Renderers by name: each engine changes messages in its own way before it runs the template."""

from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from time import monotonic
from typing import TypeVar

from minicache.core.errors import MinicacheError
from minicache.text.chat import Chat
from minicache.text.errors import BadMessage, TemplateFailed, TemplateTooCostly
from minicache.text.failure import explain
from minicache.text.origin import Rendered
from minicache.text.presteps import Variables, transformers
from minicache.text.sglang_steps import functions_only, sglang
from minicache.text.template import ChatTemplate
from minicache.text.vllm_steps import vllm

__all__ = ["Chat", "Renderer", "RendererName"]

T = TypeVar("T")


class RendererName(StrEnum):
    """Whose changes: those of transformers' `apply_chat_template`, of vLLM's server, or of SGLang's."""

    transformers = "transformers"
    vllm = "vllm"
    sglang = "sglang"


_PRESTEPS: dict[RendererName, Callable[[Chat, str], Variables]] = {
    RendererName.transformers: transformers,
    RendererName.vllm: vllm,
    RendererName.sglang: sglang,
}


class Renderer:
    """A chat template as one engine uses it."""

    def __init__(self, template: ChatTemplate, name: RendererName = RendererName.transformers) -> None:
        self.template, self.name = template, name

    def render(self, chat: Chat) -> str:
        """The prompt. Raises `BadMessage`, which names message and field, or `TemplateFailed` if the template fails."""
        return self._run(chat, lambda chat: chat, self.template.run)

    def render_with_origins(self, chat: Chat) -> Rendered:
        """The same prompt with the origin of each character. Several times slower. Raises as `render` does."""
        return self._run(chat, Chat.placed, self.template.run_with_origins)

    def _run(self, chat: Chat, given: Callable[[Chat], Chat], run: Callable[[Variables, float], T]) -> T:
        until = monotonic() + self.template.seconds  # for the first try and for all tries that explain its error
        try:
            variables = self._prepared(given(chat))
        except RecursionError:
            raise BadMessage("the chat is nested too deeply to be rendered") from None
        try:
            return run(variables, until)
        except TemplateTooCostly:
            raise
        except TemplateFailed as error:
            retry = functions_only(variables) if self.name is RendererName.sglang else None
            if retry is not None:
                with suppress(TemplateFailed):
                    return run(retry, until)
            raise explain(error, chat, lambda other: self._failure(other, until)) from None

    def _failure(self, chat: Chat, until: float) -> str | None:
        """The sentence of the error that rendering this chat raises, or `None` if it can be rendered."""
        try:
            self.template.run(self._prepared(chat), until)
        except MinicacheError as error:
            return str(error)
        return None

    def _prepared(self, chat: Chat) -> Variables:
        return _PRESTEPS[self.name](chat, self.template.source)
