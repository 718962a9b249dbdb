"""Chat templates: from messages to the one text that the model reads.

`ChatTemplate.render` renders as transformers 5.24 does (`apply_chat_template`). `renderer.py` has the other engines.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from math import inf
from pathlib import Path
from traceback import walk_tb
from typing import Any

from jinja2 import Template, TemplateSyntaxError

from minicache.common.files import require_end
from minicache.text.bounded import render
from minicache.text.budget import SECONDS, Budget, LimitReached
from minicache.text.chat import Chat, Message, check_content
from minicache.text.environment import SPECIAL_TOKENS, ChatEnvironment
from minicache.text.errors import TemplateFailed, TemplateTooCostly
from minicache.text.origin import Rendered
from minicache.text.origin_environment import OriginBudget, OriginEnvironment, render_with_origins
from minicache.text.presteps import transformers
from minicache.text.tokenizer import read_json_object, token_text

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
LONGEST_SOURCE = 2**18  # characters: real templates have a tenth of it, and the worst compile for some seconds
_LONGEST_WORDS = 1000  # characters of the words of a template's own error
_TEMPLATE_FILE = "<template>"  # the file name that Jinja gives a template in tracebacks


class ChatTemplate:
    """A chat template, ready to render.

    `special_tokens` are variables that the template may use, such as `bos_token`. `now` is the clock that the
    template's `strftime_now` reads. `seconds` limit each rendering, in time and in size (see `budget.py`). Raises
    `TemplateFailed` if `source` does not parse.
    """

    def __init__(
        self,
        source: str,
        *,
        special_tokens: Mapping[str, str] | None = None,
        now: Callable[[], datetime] = datetime.now,
        seconds: float = SECONDS,
    ) -> None:
        self.source = source
        self.special_tokens = dict(special_tokens or {})
        self.seconds = seconds
        self._now = now
        if len(source) > LONGEST_SOURCE:
            raise TemplateFailed(
                f"the chat template has {len(source):,} characters: at most {LONGEST_SOURCE:,} are compiled"
            )
        try:
            self._template = ChatEnvironment(now=now).from_string(source)
        except Exception as error:  # Jinja's and Python's compilers raise anything on a source made to break them
            raise TemplateFailed("the chat template does not parse: {}{}".format(*_describe(error))) from None

    @classmethod
    def from_folder(
        cls, folder: str | Path, *, now: Callable[[], datetime] = datetime.now, seconds: float = SECONDS
    ) -> "ChatTemplate":
        """The template of a model folder: chat_template.jinja, or `chat_template` in tokenizer_config.json. Raises
        `TemplateFailed` if the folder has neither."""
        folder = Path(folder)
        config = read_json_object(folder / "tokenizer_config.json")
        file = folder / "chat_template.jinja"
        source = read_template(file) if file.is_file() else _default_source(config.get("chat_template"))
        if source is None:
            raise TemplateFailed(
                f"{folder} has no chat template: neither {file.name} nor chat_template in tokenizer_config.json"
            )
        tokens = {name: text for name in SPECIAL_TOKENS if (text := token_text(config.get(name))) is not None}
        return cls(source, special_tokens=tokens, now=now, seconds=seconds)

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        **variables: Any,
    ) -> str:
        """The prompt. Raises `BadMessage`, which names message and field, or `TemplateFailed` if the template fails."""
        chat = Chat(messages, tools, add_generation_prompt=add_generation_prompt, template_kwargs=variables)
        prepared = transformers(chat)
        check_content(prepared["messages"])
        return self.run(prepared)

    def run(self, variables: Mapping[str, Any], until: float = inf) -> str:
        """Render the template with exactly these variables and its special tokens, until `until` on the clock of
        `time.monotonic` at the latest. Raises `TemplateFailed`, or `TemplateTooCostly` at the limit."""
        try:
            return render(self._template, {**self.special_tokens, **variables}, Budget(self.seconds, until))
        except Exception as error:  # a template is a program: it can raise anything
            raise _failed(error) from None

    def run_with_origins(self, variables: Mapping[str, Any], until: float = inf) -> Rendered:
        """The same as `run`, with the origin of each character. The variables must be placed (see `payload.py`).
        Several times slower. Raises as `run` does."""
        try:
            values, budget = {**self.special_tokens, **variables}, OriginBudget(self.seconds, until)
            return render_with_origins(self._origin_template, values, budget)
        except Exception as error:
            raise _failed(error) from None

    @cached_property
    def _origin_template(self) -> Template:
        return OriginEnvironment(now=self._now).from_string(self.source)


def read_template(file: Path) -> str:
    """The text of a template's file. Raises `TemplateFailed` if it cannot be read."""
    try:
        return require_end(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TemplateFailed(f"{file} is not a readable template: {error}") from None


def _default_source(value: Any) -> str | None:
    """tokenizer_config.json holds one template, or a list of `{name, template}` with one named "default"."""
    if isinstance(value, list):
        entries = [entry for entry in value if isinstance(entry, dict) and entry.get("name") == "default"]
        value = entries[-1].get("template") if entries else None
    return value if isinstance(value, str) else None


def _failed(error: Exception) -> TemplateFailed:
    """The error of a template. Its own words may quote the request."""
    words, where = _describe(error)
    if isinstance(error, LimitReached):
        return TemplateTooCostly(f"the chat template was stopped{where}: {words}")
    return TemplateFailed(f"the chat template failed: {words}{where}", words)


def _describe(error: Exception) -> tuple[str, str]:
    """The words of an error, and the line of the template on which it was raised, if that is known."""
    line = error.lineno if isinstance(error, TemplateSyntaxError) else None
    for frame, number in walk_tb(error.__traceback__):
        if frame.f_code.co_filename == _TEMPLATE_FILE:
            line = number
    where = "" if line is None else f" (line {line})"
    if isinstance(error, RecursionError):
        return "it is nested too deeply", where
    if isinstance(error, MemoryError):
        return "it needs more memory than there is", where
    words = str(error.msg if isinstance(error, SyntaxError) else error)  # a SyntaxError counts lines of compiled code
    words = " ".join(words[:_LONGEST_WORDS].split()) or type(error).__name__
    return words, where
