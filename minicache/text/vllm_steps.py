"""The changes that vLLM 0.33.0 makes to a chat between `/v1/chat/completions` and the template.

* A message keeps role, content, name and task. An assistant message also keeps reasoning (under both names) and tool
  calls, a tool message the id of its call. Missing content becomes an empty text.
* Parts become one text, joined by newlines, unless the template loops over them. The parts of a tool message always do
  if all are text. Other parts are refused then, because what vLLM writes for them depends on the model.
* The line with which Claude Code begins its system prompt is dropped, because it differs from request to request.
* Arguments of a call that are text become the JSON object in it; anything that is not an object becomes an empty one.
* If the template does not mention the role `developer`, it becomes `system`, and all system messages are merged into
  the first message.
* Tools keep their known fields in the protocol's order. A missing description or parameters becomes null.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from minicache.text.chat import Chat, Message, check_messages, check_tools
from minicache.text.content_format import vllm_wants_parts
from minicache.text.errors import BadMessage
from minicache.text.payload import loads, relisted, remade
from minicache.text.presteps import Variables, calls, joined, parts_of, transformers, written

_HEADER = "x-anthropic-billing-header"
_TEXTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal", "thinking": "thinking"}
_MEDIA = {
    "image_url": "image",
    "input_image": "image",
    "audio_url": "audio",
    "input_audio": "audio",
    "video_url": "video",
}


def vllm(chat: Chat, source: str) -> Variables:
    """The variables of the template whose text is `source`. Raises `BadMessage`."""
    as_parts = vllm_wants_parts(source)
    messages = [_message(index, message, as_parts) for index, message in enumerate(check_messages(chat.messages))]
    knows_developer = '"developer"' in source or "'developer'" in source
    if not knows_developer and any(message["role"] == "developer" for message in messages):
        messages = _with_one_system_message(messages)
    tools = None if chat.tools is None else [_tool(index, tool) for index, tool in enumerate(check_tools(chat.tools))]
    placed = relisted(chat.messages, messages)
    return transformers(replace(chat, messages=placed, tools=tools and relisted(chat.tools, tools)))


def _message(index: int, message: Message, as_parts: bool) -> Message:
    role, content = message["role"], message.get("content")
    parts = _parts(index, message, as_parts)
    if not as_parts or (role == "tool" and all(part["type"] == "text" for part in parts)):
        text = joined("\n", [part["text"] for part in parts], content)
        kept: dict[str, Any] = {"role": role, "content": text}
    else:
        kept = {"role": role, "content": relisted(content, parts)}
    reasoning = message.get("reasoning")
    if reasoning is None:
        reasoning = message.get("reasoning_content")
    if role == "assistant":
        if message.get("tool_calls"):
            kept["tool_calls"] = [_call(call, function) for call, function in calls(index, message)]
        if reasoning is not None:
            kept |= {"reasoning": reasoning, "reasoning_content": reasoning}
    elif role == "tool" and "tool_call_id" in message:
        kept["tool_call_id"] = message["tool_call_id"]
    kept |= {name: message[name] for name in ("name", "task") if isinstance(message.get(name), str)}
    if role == "developer":
        kept["tools"] = message.get("tools")
    return remade(message, kept)


def _parts(index: int, message: Message, as_parts: bool) -> list[dict[str, Any]]:
    """The content as parts `{type, text}` and, if the template expects parts, `{type}` for media. Raises
    `BadMessage`."""
    content = message.get("content")
    parts: list[dict[str, Any]] = []
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else parts_of(index, message):
        kind = part.get("type") if isinstance(part.get("type"), str) else repr(part.get("type"))
        if kind in _TEXTS:
            text = part.get(_TEXTS[kind])
            if text is not None and not isinstance(text, str):
                raise BadMessage(f"message {index}: a part of content has a text that is {type(text).__name__}")
            if message["role"] == "system" and kind == "text" and text is not None and text.startswith(_HEADER):
                text = text.partition("\n")[2] or None
            if text is not None:
                parts.append(remade(part, {"type": "text", "text": text}))
        elif as_parts and kind in _MEDIA:
            parts.append({"type": _MEDIA[kind]})
        elif kind == "tool_reference":
            name = part.get("name")
            parts.append({"type": kind, "name": name} if as_parts else {"type": "text", "text": name})
        else:
            reason = "what vLLM writes for it depends on the model" if kind in _MEDIA else "vLLM refuses it"
            raise BadMessage(f"message {index}: content has a part of type {kind!r}: {reason}", repr(kind))
    return parts


def _call(call: Mapping[str, Any], function: Mapping[str, Any]) -> Any:
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = loads(arguments)
        except ValueError:  # vLLM continues with an empty object, so that a broken call does not end the conversation
            arguments = None
    if not isinstance(arguments, dict):
        arguments = {}
    return remade(call, {**call, "function": remade(function, {**function, "arguments": arguments})})


def _with_one_system_message(messages: list[Message]) -> list[Message]:
    renamed = []
    for message in messages:
        if message["role"] == "developer":
            kept = {name: value for name, value in message.items() if name != "tools"}
            message = remade(message, {**kept, "role": written("system", message)})
        renamed.append(message)
    system = [message for message in renamed if message["role"] == "system"]
    if len(system) == 1 and renamed[0] is system[0]:
        return renamed
    content = joined("\n\n", filter(None, (_text_of(message["content"]) for message in system)), system[0])
    merged = remade(system[0], {"role": written("system", system[0]), "content": content})
    return [merged, *(message for message in renamed if message["role"] != "system")]


def _text_of(content: Any) -> str:
    return content if isinstance(content, str) else joined("\n", [p["text"] for p in content if "text" in p], content)


def _tool(index: int, tool: Mapping[str, Any]) -> Any:
    function = tool.get("function")
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise BadMessage(f"tool {index} has no function with a name, which vLLM needs")
    kept = {name: function.get(name) for name in ("name", "description", "parameters")}
    kept |= {name: function[name] for name in ("strict", "defer_loading") if function.get(name) is not None}
    outer = {"type": tool.get("type", "function"), "function": remade(function, kept)}
    return remade(tool, outer | ({"defer_loading": tool["defer_loading"]} if tool.get("defer_loading") else {}))
