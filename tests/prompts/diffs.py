"""Helpers that compare two bodies."""

from datetime import datetime
from typing import Any

from minicache.prompts.diff import Diff
from minicache.prompts.examine import Examined, examine
from minicache.prompts.prompt import Means
from minicache.prompts.request_log import LoggedRequest, to_request
from minicache.prompts.values import text_of_path
from minicache.text.byte_tokenizer import PlainByteTokenizer
from minicache.text.renderer import Renderer, RendererName
from minicache.text.template import ChatTemplate
from minicache.text.tokenizer import Tokenizer
from tests.prompts.cases import Case, Verdict
from tests.prompts.templates import TEMPLATES


def means(template: str = "chatml", tokenizer: Tokenizer | None = None, renderer: str = "transformers") -> Means:
    source = TEMPLATES.get(template, template)
    return Means(tokenizer or PlainByteTokenizer(), Renderer(ChatTemplate(source), RendererName(renderer)))


def logged(body: dict[str, Any], time: datetime | None = None, **more: Any) -> LoggedRequest:
    wrapped = {"body": body, "time": None if time is None else time.isoformat(), **more}
    return to_request(wrapped, "log")


def diff_of(a: Any, b: Any, using: Means, generated: str | None = None) -> Diff:
    """`a` and `b` are bodies or logged requests."""
    pair = (x if isinstance(x, LoggedRequest) else logged(x) for x in (a, b))
    return examine(*pair, using, generated=generated).diff


def examined(case: Case) -> Examined:
    times = case.times or (None, None)
    pair = (logged(body, time) for body, time in zip((case.a, case.b), times, strict=True))
    return examine(*pair, means(case.template), generated=case.generated)


def verdicts(diff: Diff) -> tuple[Verdict, ...]:
    return tuple(
        (c.layer, c.kind, None if c.path is None else text_of_path(c.path), c.offset, c.gain_tokens, c.gain_blocks)
        for c in diff.causes
    )
