"""The bodies of four APIs in one form, each value remembering where it stood in the body that was sent.

OpenAI chat bodies are that form. Anthropic's and the Responses API's are turned into it as servers of open models turn
them before they render; texts that are drawn together are joined by a newline. A completion's prompt is text already.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from minicache.prompts.errors import BadLog
from minicache.prompts.values import MISSING
from minicache.text.origin import Path

ANTHROPIC_BLOCKS = ("tool_use", "tool_result", "thinking", "redacted_thinking")
# What separates caches although the tokens are equal: vLLM's and SGLang's names. `model` is compared on its own.
NAMESPACE_KEYS = ("cache_salt", "extra_key", "lora_path", "lora_request")


class Api(StrEnum):
    chat = "OpenAI chat"
    anthropic = "Anthropic Messages"
    responses = "OpenAI Responses"
    completion = "completion"


@dataclass(slots=True)
class Sources:
    """Where the parts of a payload stood in the body: (path in the payload, offset in its text) -> path in the body."""

    entries: dict[Path, list[tuple[int, Path]]] = field(default_factory=dict)

    def add(self, path: Path, source: Path, offset: int = 0) -> None:
        """The text (or all that is under) `path` came from `source`, from character `offset` on."""
        self.entries.setdefault(path, []).append((offset, source))

    def find(self, path: Path, offset: int | None) -> tuple[Path, int | None]:
        """`path` and `offset` in the words of the body that was sent."""
        for length in range(len(path), -1, -1):
            pieces = self.entries.get(path[:length])
            if pieces:
                # At a joint the later text is meant, as it is where a text is inserted between two others.
                start, source = max((p for p in pieces if p[0] <= (offset or 0)), key=lambda p: p[0], default=pieces[0])
                whole = length == len(path) and offset is not None
                return (*source, *path[length:]), (offset or 0) - start if whole else offset
        return path, offset


@dataclass(frozen=True, slots=True)
class Body:
    """A request as it is rendered (see `values`), where each part stood, and what else its sender said.

    `prompt_ids` are the tokens of a completion whose prompt was sent as such: it has no text.
    """

    api: Api
    payload: dict[str, Any]
    sources: Sources
    model: str | None
    namespace: tuple[tuple[str, str], ...] = ()
    prompt_logprobs: int | None = None
    prompt_ids: list[int] | None = None


def read_body(body: Mapping[str, Any], where: str) -> Body:
    """Raises `BadLog` naming `where` and the field."""
    api = _api_of(body)
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
        from minicache.prompts import foreign_bodies  # most logs have none

        convert = foreign_bodies.from_anthropic if api is Api.anthropic else foreign_bodies.from_responses
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
        "messages": require_list(body, "messages", where),
        "tools": require_list(body, "tools", where) if body.get("tools") else None,
        "documents": require_list(body, "documents", where) if body.get("documents") else None,
        "template_kwargs": dict(arguments),
        "add_generation_prompt": body.get("add_generation_prompt", True) is not False,
    }


def require_list(body: Mapping[str, Any], key: str, where: str) -> list[dict[str, Any]]:
    """A list of objects under `key`; raises `BadLog`."""
    value = body.get(key, MISSING)
    if not isinstance(value, list):
        raise BadLog(f"{where}: {key} must be a list")
    for index, item in enumerate(value):
        if not isinstance(item, Mapping):
            raise BadLog(f"{where}: {key}[{index}] must be an object")
    if key == "messages" and not value:
        raise BadLog(f"{where}: messages is empty: a chat needs at least one message")
    return value
