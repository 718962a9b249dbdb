"""A chat, the input of every renderer, and the checks that every renderer makes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from minicache.text.errors import BadMessage
from minicache.text.payload import place

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Chat:
    """The part of a request that becomes its prompt. Paths of origins start with these names: ("messages", 0,
    "content"), ("tools", 1).

    `template_kwargs` are arguments of the template, such as `enable_thinking`. `time` is the time of the request, which
    the template's `strftime_now` writes (`None`: the current time).
    """

    messages: Sequence[Message]
    tools: Sequence[Mapping[str, Any]] | None = None
    documents: Sequence[Mapping[str, Any]] | None = None
    add_generation_prompt: bool = True
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    time: datetime | None = None

    def placed(self) -> "Chat":
        """A copy whose values know their paths, as `ChatTemplate.run_with_origins` needs them (see `payload.py`)."""
        lists = {
            name: place(list(value), (name,))
            for name in ("messages", "tools", "documents")
            if (value := getattr(self, name)) is not None
        }
        kwargs = {name: place(value, ("template_kwargs", name)) for name, value in self.template_kwargs.items()}
        return replace(self, **lists, template_kwargs=kwargs)


def check_messages(messages: Any) -> Sequence[Message]:
    """The messages, if each is an object with a role and, if any, text or a list as content. Raises `BadMessage`."""
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Sequence):
        raise BadMessage(f"messages must be a list of messages, not {type(messages).__name__}")
    if not messages:
        raise BadMessage("messages is empty: a chat needs at least one message")
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping):
            kind = type(message).__name__
            raise BadMessage(f"message {index} must be an object with a role and content, not {kind}")
        role, content = message.get("role"), message.get("content")
        if role is None:
            raise BadMessage(f"message {index} has no role: add one, such as 'user'")
        if not isinstance(role, str):
            raise BadMessage(f"message {index}: role must be text, not {type(role).__name__}")
        if content is not None and not isinstance(content, (str, list, tuple)):
            kind = type(content).__name__
            raise BadMessage(f"message {index}: content must be text or a list of parts, not {kind}")
    return messages


def check_content(messages: Sequence[Message]) -> None:
    """Raises `BadMessage` if a message has neither content nor tool calls. Call it after null fields are dropped."""
    for index, message in enumerate(messages):
        if "content" not in message and not message.get("tool_calls"):
            role = repr(message["role"])
            raise BadMessage(f"message {index} (role {role}) has no content", role)


def check_tools(tools: Sequence[Any]) -> Sequence[Mapping[str, Any]]:
    """The tools, if each is an object. Raises `BadMessage`."""
    for index, tool in enumerate(tools):
        if not isinstance(tool, Mapping):
            raise BadMessage(f"tool {index} must be an object with a JSON schema, not {type(tool).__name__}")
    return tools
