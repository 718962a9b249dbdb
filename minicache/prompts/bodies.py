"""The request bodies of four APIs in one form, the payload, with the place of each value in the body that was sent.

An OpenAI chat body is nearly in this form already. Anthropic Messages and OpenAI Responses bodies become the
conversation that a server of open models would render; texts that are put together are joined by a newline. The prompt
of a completion is text, or token ids, already.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from minicache.common.json_reader import num_values
from minicache.prompts.errors import BadLog
from minicache.prompts.values import MISSING, text_of_path
from minicache.text.origin import Path

ANTHROPIC_BLOCKS = ("tool_use", "tool_result", "thinking", "redacted_thinking")
# Keys that separate caches of equal tokens: vLLM's and SGLang's names. `model` is compared separately.
NAMESPACE_KEYS = ("cache_salt", "extra_key", "lora_path", "lora_request")

MOST_VALUES = 500_000  # in the body of a chat: two such bodies take 20 seconds and a gigabyte
JOINT = "\n"  # between texts of one message


class Api(StrEnum):
    chat = "OpenAI chat"
    anthropic = "Anthropic Messages"
    responses = "OpenAI Responses"
    completion = "completion"


@dataclass(slots=True)
class Sources:
    """A map from places in a payload to places in the body that was sent: (path, offset in its text) -> path."""

    entries: dict[Path, list[tuple[int, Path]]] = field(default_factory=dict)

    def add(self, path: Path, source: Path, offset: int = 0) -> None:
        """Record that the value at `path` came from `source`; of a text, its characters from `offset` on."""
        self.entries.setdefault(path, []).append((offset, source))

    def find(self, path: Path, offset: int | None) -> tuple[Path, int | None]:
        """The path and offset, in the body that was sent, of the place `path` and `offset` in the payload."""
        for length in range(len(path), -1, -1):
            pieces = self.entries.get(path[:length])
            if pieces:
                # Where two texts are joined, this is the later one: a text inserted between them begins there.
                start, source = max((p for p in pieces if p[0] <= (offset or 0)), key=lambda p: p[0], default=pieces[0])
                whole = length == len(path) and offset is not None
                return (*source, *path[length:]), (offset or 0) - start if whole else offset
        return path, offset


@dataclass(frozen=True, slots=True)
class Body:
    """A request body that was read: its payload (see `values`), the sources of its values, and its other settings.

    `namespace` holds the keys that separate caches, with their values. `prompt_ids` are the tokens of a completion
    whose prompt was sent as token ids and so has no text.
    """

    api: Api
    payload: dict[str, Any]
    sources: Sources
    model: str | None
    namespace: tuple[tuple[str, str], ...] = ()
    prompt_logprobs: int | None = None
    prompt_ids: list[int] | None = None


def read_body(body: Mapping[str, Any], where: str) -> Body:
    """Read a body of any of the four APIs. Raises `BadLog`, which names `where` and the field."""
    api = _api_of(body)
    if api is not Api.completion and num_values(body) > MOST_VALUES:
        raise BadLog(
            f"{where} has more than {MOST_VALUES:,} values (texts, numbers, lists, objects): requests of this size "
            "cannot be compared"
        )
    sources = Sources()
    prompt_ids = None
    if api is Api.completion:
        prompt = body.get("prompt")
        if isinstance(prompt, list) and prompt and all(type(token) is int and token >= 0 for token in prompt):
            prompt_ids, prompt = prompt, ""
        if not isinstance(prompt, str):
            raise BadLog(f"{where}: prompt must be one text or a list of token ids")
        payload: dict[str, Any] = {"prompt": prompt}
    elif api is Api.chat:
        payload = _chat(body, where, sources)
    else:
        convert = _from_anthropic if api is Api.anthropic else _from_responses
        payload = convert(body, where, sources)
    model, logprobs = body.get("model"), body.get("prompt_logprobs")
    return Body(
        api,
        payload,
        sources,
        model if isinstance(model, str) else None,
        tuple((key, repr(body[key])) for key in NAMESPACE_KEYS if body.get(key) not in (None, "")),
        logprobs if isinstance(logprobs, int) and not isinstance(logprobs, bool) else None,
        prompt_ids,
    )


def _api_of(body: Mapping[str, Any]) -> Api:
    if "messages" not in body:
        return Api.responses if "input" in body else Api.completion
    tools, messages = body.get("tools"), body["messages"]
    if "system" in body or "anthropic_version" in body or str(body.get("model", "")).startswith("claude"):
        return Api.anthropic
    if isinstance(tools, list) and any(isinstance(tool, Mapping) and "input_schema" in tool for tool in tools):
        return Api.anthropic
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, Mapping) else None
        for block in content if isinstance(content, list) else ():
            if isinstance(block, Mapping) and block.get("type") in ANTHROPIC_BLOCKS:
                return Api.anthropic
    return Api.chat


def _chat(body: Mapping[str, Any], where: str, sources: Sources) -> dict[str, Any]:
    arguments = body.get("chat_template_kwargs") or {}
    if not isinstance(arguments, Mapping):
        raise BadLog(f"{where}: chat_template_kwargs must be an object")
    sources.add(("template_kwargs",), ("chat_template_kwargs",))
    if body.get("reasoning_effort") is not None and "reasoning_effort" not in arguments:
        arguments = {**arguments, "reasoning_effort": body["reasoning_effort"]}
        sources.add(("template_kwargs", "reasoning_effort"), ("reasoning_effort",))
    return {
        "messages": _list_of_objects(body, "messages", where),
        "tools": _list_of_objects(body, "tools", where) if body.get("tools") else None,
        "documents": _list_of_objects(body, "documents", where) if body.get("documents") else None,
        "template_kwargs": dict(arguments),
        "add_generation_prompt": body.get("add_generation_prompt", True) is not False,
    }


def _list_of_objects(body: Mapping[str, Any], key: str, where: str) -> list[dict[str, Any]]:
    """The list of objects under `key`. Raises `BadLog`."""
    value = body.get(key, MISSING)
    if not isinstance(value, list):
        raise BadLog(f"{where}: {key} must be a list")
    for index, item in enumerate(value):
        if not isinstance(item, Mapping):
            raise BadLog(f"{where}: {key}[{index}] must be an object")
    if key == "messages" and not value:
        raise BadLog(f"{where}: messages is empty: a chat needs at least one message")
    return value


def _from_anthropic(body: Mapping[str, Any], where: str, sources: Sources) -> dict[str, Any]:
    """`system` becomes the first message. A tool result becomes a message of its own, before the user's text."""
    chat = _Chat(sources, where)
    if body.get("system"):
        message = chat.message("system", ("system",))
        chat.set_text(message, "content", _texts(body["system"], ("system",), where))
    for index, turn in enumerate(_list_of_objects(body, "messages", where)):
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
    for index, tool in enumerate(_list_of_objects(body, "tools", where) if body.get("tools") else ()):
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
    if others:  # images and other parts stay as they are: only the template knows how to write them
        message["content"] = [block for _, block in blocks]
    else:
        chat.set_text(message, "content", texts)


def _from_responses(body: Mapping[str, Any], where: str, sources: Sources) -> dict[str, Any]:
    """`instructions` becomes the first message. Calls and reasoning join the assistant message they belong to."""
    if body.get("previous_response_id"):
        raise BadLog(
            f"{where}: previous_response_id refers to turns that only the server has: log the whole input instead"
        )
    chat = _Chat(sources, where)
    if body.get("instructions"):
        message = chat.message("system", ("instructions",))
        chat.set_text(message, "content", _texts(body["instructions"], ("instructions",), where))
    if isinstance(body["input"], str):
        chat.set_text(chat.message("user", ("input",)), "content", [(("input",), body["input"])])
    else:
        for index, item in enumerate(_list_of_objects(body, "input", where)):
            _responses_item(chat, item, ("input", index), where)
    tools = []
    for index, tool in enumerate(_list_of_objects(body, "tools", where) if body.get("tools") else ()):
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
    """A conversation that grows message by message, with the source of each part."""

    def __init__(self, sources: Sources, where: str) -> None:
        self.messages: list[dict[str, Any]] = []
        self.sources, self.where = sources, where

    def message(self, role: str, source: Path) -> dict[str, Any]:
        self.sources.add(("messages", len(self.messages)), source)
        self.messages.append({"role": role, "content": ""})
        return self.messages[-1]

    def open_turn(self, source: Path, *, for_text: bool = False) -> dict[str, Any]:
        """The assistant's current message, or a new one. `for_text`: a message that has text or calls already will not
        do."""
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
            raise BadLog(f"{self.where} has no messages: a chat needs at least one")
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
    """A text, or the texts of a list of parts, each with its path. Raises `BadLog` for anything else."""
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
