"""The changes that `apply_chat_template` of transformers 5.24.0 makes to a chat before it runs the template; and what
the servers' changes share.

Values may be placed (see `payload.py`). Values that are kept stay placed, and text written between two texts of a field
has this field as its origin.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from minicache.text.chat import Chat, Message, check_messages, check_tools
from minicache.text.errors import BadMessage
from minicache.text.origin import Value
from minicache.text.payload import path_of, relisted, remade
from minicache.text.traced import Traced

REASONING_FIELDS = ("reasoning_content", "thinking", "reasoning")

Variables = dict[str, Any]


def transformers(chat: Chat, source: str = "") -> Variables:
    """The variables of the template: without fields that are null, and with reasoning under each of its usual names.

    `source` is the text of the template; only the servers' versions of this function use it. Raises `BadMessage`.
    """
    tools = chat.tools
    variables: Variables = {
        "messages": relisted(chat.messages, map(_prepared, check_messages(chat.messages))),
        "tools": tools and relisted(chat.tools, (remade(tool, dict(tool)) for tool in check_tools(tools))),
        "documents": chat.documents,
        "add_generation_prompt": chat.add_generation_prompt,
    }
    if chat.time is not None:
        variables["strftime_now"] = chat.time.strftime
    return {**variables, **chat.template_kwargs}


def written(text: str, value: Any) -> str:
    """`text` that the engine writes in place of `value`, with the path of `value` as its origin if it has one."""
    path = path_of(value)
    return text if path is None else Traced(text, Value(path))


def joined(separator: str, texts: Iterable[str], field: Any) -> str:
    """The texts of a field, joined by a separator that the engine writes."""
    return written(separator, field).join(texts)


def parts_of(index: int, message: Message) -> list[Mapping[str, Any]]:
    """The parts of a message whose content is a list; a plain text in the list becomes a part. Raises `BadMessage`."""
    parts: list[Mapping[str, Any]] = []
    for number, part in enumerate(message.get("content") or ()):
        if not isinstance(part, (str, Mapping)):
            raise BadMessage(
                f"message {index}: content[{number}] must be a part with a type, not {type(part).__name__}"
            )
        parts.append({"type": "text", "text": part} if isinstance(part, str) else part)
    return parts


def calls(index: int, message: Message) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """The tool calls of a message, each with its function. Raises `BadMessage`."""
    found = message["tool_calls"]
    if not isinstance(found, (list, tuple)):
        raise BadMessage(f"message {index}: tool_calls must be a list, not {type(found).__name__}")
    for number, call in enumerate(found):
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping):
            raise BadMessage(f"message {index}: tool_calls[{number}] must be an object with a function")
        yield call, function


def _prepared(message: Message) -> Mapping[str, Any]:
    fields = {key: value for key, value in message.items() if value is not None}
    for name in REASONING_FIELDS:
        if name in fields:
            fields = {"thinking": fields[name], **fields, "reasoning_content": fields[name]}
            break
    return remade(message, fields)
