"""The changes that SGLang 0.5.23 makes to a chat between `/v1/chat/completions` and the template.

* A message keeps the fields of the protocol; a user message keeps only role and content. Missing content becomes an
empty text. * Parts become one text, joined by spaces, unless the template loops over them or mentions media. The parts
of a tool message always do if all are text. Media are dropped if the template expects one text. * Arguments of a call
that are text become the JSON object in it; it must be one. * Tools keep their known fields in their order. A missing
description, parameters or `defer_loading` becomes null. If the template fails, it is run again with the functions alone
as tools.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from minicache.text.chat import Chat, Message, check_messages, check_tools
from minicache.text.content_format import sglang_wants_parts
from minicache.text.errors import BadMessage
from minicache.text.payload import loads, relisted, remade
from minicache.text.presteps import Variables, calls, joined, parts_of, transformers

_FIELDS = ("role", "content", "tool_call_id", "name", "phase", "reasoning_content", "tool_calls", "tools", "prefix")
_FUNCTION = ("description", "name", "parameters", "strict", "defer_loading")
_MEDIA = {"image_url": "image", "input_image": "image", "audio_url": "audio", "video_url": "video"}


def sglang(chat: Chat, source: str) -> Variables:
    """The variables of the template whose text is `source`. Raises `BadMessage`."""
    as_parts = sglang_wants_parts(source)
    messages = [_message(index, message, as_parts) for index, message in enumerate(check_messages(chat.messages))]
    tools = None if chat.tools is None else [_tool(index, tool) for index, tool in enumerate(check_tools(chat.tools))]
    placed = relisted(chat.messages, messages)
    return transformers(replace(chat, messages=placed, tools=tools and relisted(chat.tools, tools)))


def functions_only(variables: Variables) -> Variables | None:
    """The variables for SGLang's second try after a template failed: its tools are the functions alone. `None` if there
    are no tools to change, or if they come from the arguments of the template and are not tools."""
    tools = variables["tools"]
    if not tools or not isinstance(tools, list) or not all(isinstance(t, Mapping) and "function" in t for t in tools):
        return None
    return {**variables, "tools": [tool["function"] for tool in tools]}


def _message(index: int, message: Message, as_parts: bool) -> Message:
    role = message["role"].lower()
    names = ("role", "content") if role == "user" else _FIELDS
    kept = {name: message[name] for name in names if message.get(name) is not None}
    kept |= {"role": role, "content": _content(index, message, role, as_parts)}
    if role == "assistant" and kept.get("tool_calls") is not None:
        found = enumerate(calls(index, message))
        kept["tool_calls"] = [_call(index, number, call, function) for number, (call, function) in found]
    return remade(message, kept)


def _content(index: int, message: Message, role: str, as_parts: bool) -> Any:
    content = message.get("content")
    if content is None or isinstance(content, str):
        return "" if content is None else content
    parts = parts_of(index, message)
    texts = [part["text"] for part in parts if _is_text(part)]
    if not as_parts or (role == "tool" and all(map(_is_text, parts))):
        return joined(" ", texts, content)
    shown: list[Mapping[str, Any]] = []
    for part in parts:
        kind = part.get("type")
        if _is_text(part):
            shown.append(remade(part, {"type": "text", "text": part["text"]}))
        elif kind in _MEDIA:
            shown.append({"type": _MEDIA[kind]})
        elif kind == "tool_reference":
            shown.append(part)
    return relisted(content, shown)


def _is_text(part: Mapping[str, Any]) -> bool:
    return part.get("type") in ("text", "input_text") and isinstance(part.get("text"), str)


def _call(index: int, number: int, call: Mapping[str, Any], function: Mapping[str, Any]) -> Any:
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = loads(arguments)
        except ValueError:
            arguments = None
        if not isinstance(arguments, dict):
            where = f"tool_calls[{number}].function.arguments"
            raise BadMessage(f"message {index}: {where} is text that is not a JSON object, which SGLang refuses")
    kept = {"name": function.get("name"), "arguments": arguments}
    outer = {name: call.get(name) for name in ("id", "index")} | {"type": call.get("type", "function")}
    return remade(call, {**outer, "function": remade(function, kept)})


def _tool(index: int, tool: Mapping[str, Any]) -> Any:
    function = tool.get("function")
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise BadMessage(f"tool {index} has no function with a name, which SGLang needs")
    kept = {name: value for name, value in function.items() if name in _FUNCTION}
    kept |= {name: None for name in ("description", "parameters") if name not in kept}
    kept = {name: value for name, value in kept.items() if value is not None or name in ("description", "parameters")}
    outer = {"type": tool.get("type", "function"), "function": remade(function, kept)}
    return remade(tool, {**outer, "defer_loading": tool.get("defer_loading")})
