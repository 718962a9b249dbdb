"""Anthropic Messages and OpenAI Responses as the conversation that a server of open models would render."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from minicache.prompts.bodies import Sources, require_list
from minicache.prompts.errors import BadLog
from minicache.prompts.values import text_of_path
from minicache.text.origin import Path

JOINT = "\n"  # between texts of one message


def from_anthropic(body: Mapping[str, Any], where: str, sources: Sources) -> dict[str, Any]:
    """`system` becomes the first message; a tool result becomes a message of its own, before the user's text."""
    chat = _Chat(sources, where)
    if body.get("system"):
        message = chat.message("system", ("system",))
        chat.set_text(message, "content", _texts(body["system"], ("system",), where))
    for index, turn in enumerate(require_list(body, "messages", where)):
        path: Path = ("messages", index, "content")
        role = str(turn.get("role"))
        content = turn.get("content")
        blocks = [(path, {"type": "text", "text": content})] if isinstance(content, str) else list(_blocks(turn, path))
        for place, block in blocks:
            if block.get("type") == "tool_result":
                result = chat.message("tool", ("messages", index))
                result["tool_call_id"] = block.get("tool_use_id")
                chat.set_text(result, "content", _texts(block.get("content") or "", (*place, "content"), where))
        rest = [(place, block) for place, block in blocks if block.get("type") != "tool_result"]
        if rest or not blocks:
            _anthropic_turn(chat, chat.message(role, ("messages", index)), rest, where)
    tools = []
    for index, tool in enumerate(require_list(body, "tools", where) if body.get("tools") else ()):
        function = {"name": tool.get("name")}
        if "description" in tool:
            function["description"] = tool["description"]
        if "input_schema" in tool:
            function["parameters"] = tool["input_schema"]
            sources.add(("tools", index, "function", "parameters"), ("tools", index, "input_schema"))
        sources.add(("tools", index, "function"), ("tools", index))
        tools.append({"type": "function", "function": function})
    return chat.payload(tools)


def _anthropic_turn(chat: "_Chat", message: dict[str, Any], blocks: list[tuple[Path, Any]], where: str) -> None:
    texts, thoughts, others = [], [], []
    for place, block in blocks:
        kind = block.get("type")
        if kind == "text" and isinstance(block.get("text"), str):
            texts.append((place if len(place) == 3 else (*place, "text"), block["text"]))
        elif kind == "thinking" and isinstance(block.get("thinking"), str):
            thoughts.append(((*place, "thinking"), block["thinking"]))
        elif kind == "tool_use":
            arguments = json.dumps(block.get("input", {}), ensure_ascii=False)
            chat.add_call(message, block.get("id"), block.get("name"), arguments, place, "input")
        else:
            others.append((place, block))
    if thoughts:
        chat.set_text(message, "reasoning_content", thoughts)
    if others:  # images and the like stay what they are: only the template knows how to write them
        message["content"] = [block for _, block in blocks]
    else:
        chat.set_text(message, "content", texts)


def from_responses(body: Mapping[str, Any], where: str, sources: Sources) -> dict[str, Any]:
    """`instructions` becomes the first message; calls and reasoning join the assistant message they belong to."""
    if body.get("previous_response_id"):
        raise BadLog(
            f"{where}: previous_response_id refers to turns that only the server has; log the whole input instead"
        )
    chat = _Chat(sources, where)
    if body.get("instructions"):
        message = chat.message("system", ("instructions",))
        chat.set_text(message, "content", _texts(body["instructions"], ("instructions",), where))
    if isinstance(body["input"], str):
        chat.set_text(chat.message("user", ("input",)), "content", [(("input",), body["input"])])
    else:
        for index, item in enumerate(require_list(body, "input", where)):
            _responses_item(chat, item, ("input", index), where)
    tools = []
    for index, tool in enumerate(require_list(body, "tools", where) if body.get("tools") else ()):
        function = {key: tool[key] for key in ("name", "description", "parameters") if key in tool}
        sources.add(("tools", index, "function"), ("tools", index))
        tools.append({"type": "function", "function": function} if function else tool)
    return chat.payload(tools)


def _responses_item(chat: "_Chat", item: Mapping[str, Any], path: Path, where: str) -> None:
    kind = item.get("type", "message")
    if kind == "message":
        role = "system" if item.get("role") == "developer" else str(item.get("role"))
        message = chat.open_turn(path, for_text=True) if role == "assistant" else chat.message(role, path)
        chat.set_text(message, "content", _texts(item.get("content") or "", (*path, "content"), where))
    elif kind == "function_call":
        message = chat.open_turn(path)
        chat.add_call(message, item.get("call_id"), item.get("name"), item.get("arguments", ""), path, "arguments")
    elif kind == "function_call_output":
        message = chat.message("tool", path)
        message["tool_call_id"] = item.get("call_id")
        chat.set_text(message, "content", _texts(item.get("output") or "", (*path, "output"), where))
    elif kind == "reasoning":
        parts = "content" if item.get("content") else "summary"
        texts = _texts(item.get(parts) or "", (*path, parts), where)
        chat.set_text(chat.message("assistant", path), "reasoning_content", texts)
    else:
        place = text_of_path(path)
        raise BadLog(f"{where}: {place} has the type {kind!r}, which cannot be rendered", repr(kind))


class _Chat:
    """Messages that are put together, with where each part came from."""

    def __init__(self, sources: Sources, where: str) -> None:
        self.messages: list[dict[str, Any]] = []
        self.sources, self.where = sources, where

    def message(self, role: str, source: Path) -> dict[str, Any]:
        self.sources.add(("messages", len(self.messages)), source)
        self.messages.append({"role": role, "content": ""})
        return self.messages[-1]

    def open_turn(self, source: Path, *, for_text: bool = False) -> dict[str, Any]:
        """The assistant's turn that is going on (for text: that has said nothing yet), or a new one."""
        last = self.messages[-1] if self.messages else {}
        if last.get("role") == "assistant" and not (for_text and (last["content"] or "tool_calls" in last)):
            return self.messages[-1]
        return self.message("assistant", source)

    def set_text(self, message: dict[str, Any], key: str, texts: list[tuple[Path, str]]) -> None:
        path: Path = ("messages", len(self.messages) - 1, key)
        offset = 0
        for source, text in texts:
            self.sources.add(path, source, offset)
            offset += len(text) + len(JOINT)
        message[key] = JOINT.join(text for _, text in texts)

    def add_call(
        self, message: dict[str, Any], id: Any, name: Any, arguments: Any, source: Path, arguments_key: str
    ) -> None:
        calls = message.setdefault("tool_calls", [])
        path: Path = ("messages", len(self.messages) - 1, "tool_calls", len(calls))
        self.sources.add(path, source)
        self.sources.add((*path, "function"), source)
        self.sources.add((*path, "function", "arguments"), (*source, arguments_key))
        calls.append({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})

    def payload(self, tools: list[Any]) -> dict[str, Any]:
        if not self.messages:
            raise BadLog(f"{self.where}: there is no message in it")
        return {
            "messages": self.messages,
            "tools": tools or None,
            "documents": None,
            "template_kwargs": {},
            "add_generation_prompt": True,
        }


def _blocks(turn: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Any]]:
    content = turn.get("content")
    for number, block in enumerate(content if isinstance(content, list) else ()):
        if isinstance(block, Mapping):
            yield (*path, number), block


def _texts(value: Any, path: Path, where: str) -> list[tuple[Path, str]]:
    """A text, or the texts of a list of parts, each with its path."""
    if isinstance(value, str):
        return [(path, value)]
    if isinstance(value, list):
        texts = [
            ((*path, number, "text"), part["text"])
            for number, part in enumerate(value)
            if isinstance(part, Mapping) and isinstance(part.get("text"), str)
        ]
        if len(texts) == len(value):
            return texts
    raise BadLog(f"{where}: {text_of_path(path)} must be a text or a list of parts with a text")
