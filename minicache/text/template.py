"""Chat templates: messages to the one string that the model reads.

Templates are programs from model folders, so they run in Jinja's immutable sandbox. What a template can use beside
plain Jinja, and what happens to messages before it sees them, follows transformers 5.24 (`apply_chat_template`).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from minicache.text.errors import BadMessage, TemplateFailed
from minicache.text.tokenizer import read_json_object, token_text

Message = Mapping[str, Any]

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
REASONING_FIELDS = ("reasoning_content", "thinking", "reasoning")
SPECIAL_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


class ChatTemplate:
    """A chat template, ready to render. `now` is the clock behind the template's `strftime_now`.

    `special_tokens` are names that the template may use, such as `bos_token`. Raises `TemplateFailed` if `source` does
    not parse.
    """

    def __init__(
        self,
        source: str,
        *,
        special_tokens: Mapping[str, str] | None = None,
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        self.source = source
        self.special_tokens = dict(special_tokens or {})
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, GenerationBlock]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise_exception
        environment.globals["strftime_now"] = lambda format: now().strftime(format)
        try:
            self._template = environment.from_string(source)
        except TemplateError as error:
            raise TemplateFailed(f"the chat template does not parse: {_describe(error)}") from None

    @classmethod
    def from_folder(cls, folder: str | Path, *, now: Callable[[], datetime] = datetime.now) -> "ChatTemplate":
        """The template of a model folder: chat_template.jinja, or `chat_template` in tokenizer_config.json."""
        folder = Path(folder)
        config = read_json_object(folder / "tokenizer_config.json")
        file = folder / "chat_template.jinja"
        source = _read(file) if file.is_file() else _default_source(config.get("chat_template"))
        if source is None:
            raise TemplateFailed(f"{folder} has no chat template: neither {file.name} nor one in tokenizer_config.json")
        tokens = {name: text for name in SPECIAL_TOKENS if (text := token_text(config.get(name))) is not None}
        return cls(source, special_tokens=tokens, now=now)

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        **variables: Any,
    ) -> str:
        """The prompt. Raises `BadMessage` naming the message and field, `TemplateFailed` if the template gives up."""
        prepared = [_prepare(index, message) for index, message in enumerate(_check_messages(messages))]
        values = {
            **self.special_tokens,
            "messages": prepared,
            "tools": None if tools is None else _check_tools(tools),
            "documents": None,
            "add_generation_prompt": add_generation_prompt,
            **variables,
        }
        try:
            return self._template.render(values)
        except Exception as error:  # a template is a program: it can raise anything
            raise TemplateFailed(f"the chat template failed: {_describe(error)}") from None


class GenerationBlock(Extension):
    """`{% generation %} … {% endgeneration %}` marks the assistant's words for training; here it renders its body."""

    tags = {"generation"}  # noqa: RUF012 (the name and type that Jinja asks for)

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body).set_lineno(line)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TemplateFailed(f"{file} is not a readable template: {error}") from None


def _default_source(value: Any) -> str | None:
    """tokenizer_config.json holds one template, or a list of `{name, template}` of which one is named "default"."""
    if isinstance(value, list):
        named = {entry.get("name"): entry.get("template") for entry in value if isinstance(entry, dict)}
        value = named.get("default")
    return value if isinstance(value, str) else None


def _check_messages(messages: Any) -> Sequence[Any]:
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Sequence):
        raise BadMessage(f"messages must be a list of messages, not {type(messages).__name__}")
    if not messages:
        raise BadMessage("messages is empty: a chat needs at least one message")
    return messages


def _prepare(index: int, message: Any) -> dict[str, Any]:
    """One message as templates get it: fields that are null dropped, reasoning under each of its usual names."""
    if not isinstance(message, Mapping):
        raise BadMessage(f"message {index} must be an object with a role and content, not {type(message).__name__}")
    fields = {key: value for key, value in message.items() if value is not None}
    if "role" not in fields:
        raise BadMessage(f"message {index} has no role: add one, such as 'user'")
    if not isinstance(fields["role"], str):
        raise BadMessage(f"message {index}: role must be text, not {type(fields['role']).__name__}")
    if "content" not in fields and not fields.get("tool_calls"):
        raise BadMessage(f"message {index} (role {fields['role']!r}) has no content")
    if "content" in fields and not isinstance(fields["content"], (str, list, tuple)):
        kind = type(fields["content"]).__name__
        raise BadMessage(f"message {index}: content must be text or a list of parts, not {kind}")
    reasoning = next((fields[name] for name in REASONING_FIELDS if name in fields), None)
    if reasoning is not None:
        fields = {"thinking": reasoning, **fields, "reasoning_content": reasoning}
    return fields


def _check_tools(tools: Sequence[Any]) -> list[dict[str, Any]]:
    for index, tool in enumerate(tools):
        if not isinstance(tool, Mapping):
            raise BadMessage(f"tool {index} must be an object with a JSON schema, not {type(tool).__name__}")
    return [dict(tool) for tool in tools]


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Plain JSON. Jinja's own filter escapes `<`, `>`, `&` and `'` for HTML, which would change the tokens."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: str) -> NoReturn:
    raise TemplateError(message)


def _describe(error: Exception) -> str:
    line = getattr(error, "lineno", None)
    text = " ".join(str(error).split()) or type(error).__name__
    return text if line is None else f"{text} (line {line})"
