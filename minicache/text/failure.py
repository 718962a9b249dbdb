"""Why a template fails on a chat: the field that makes it fail, if a single one does.

A template fails with `can only concatenate str (not "Undefined")` when message 2 has no content. So this file repairs
the fields that are known to break templates. If the template then renders, the cause is the first field without whose
repair it fails again.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from minicache.common.json_reader import read_json
from minicache.text.chat import Chat
from minicache.text.errors import TemplateFailed
from minicache.text.origin import Path

MOST_SUSPECTS = 1000  # each costs one rendering


@dataclass(frozen=True, slots=True)
class _Suspect:
    path: Path
    complaint: str
    fix: str
    mended: Any


def explain(error: TemplateFailed, chat: Chat, failure: Callable[[Chat], str | None]) -> TemplateFailed:
    """`error` again, with the field on which the template fails, or else the message that makes it fail, in its
    sentence.

    `failure` renders a chat and returns the sentence of the error that this raises, or `None` if it raises none.
    """
    suspects = list(islice(_suspects(chat), MOST_SUSPECTS))
    if suspects and failure(_mend(chat, suspects)) is None:
        for suspect in suspects:
            if failure(_mend(chat, [other for other in suspects if other is not suspect])) is not None:
                where = f"message {suspect.path[1]}: {_dotted(suspect.path[2:])}"
                explained = TemplateFailed(f"{where} {suspect.complaint}: {suspect.fix} ({error})", *error.quotes)
                explained.path, explained.fix = suspect.path, suspect.fix
                return explained
    index = _first_failing(str(error), chat, failure)
    if index is None:
        return error
    role = repr(str(chat.messages[index]["role"]))
    explained = TemplateFailed(f"{error}, at message {index} (role {role})", *error.quotes, role)
    explained.path = ("messages", index)
    return explained


def _suspects(chat: Chat) -> Iterator[_Suspect]:
    for index, message in enumerate(chat.messages):
        content = message.get("content")
        if content is None:
            complaint = "is null, and this template needs text" if "content" in message else "is missing"
            yield _Suspect(("messages", index, "content"), complaint, "send an empty text", "")
        elif isinstance(content, list | tuple):
            texts = [str(part.get("text", "")) for part in content if isinstance(part, Mapping)]
            complaint = "is a list of parts, and this template needs text"
            only_text = all(isinstance(part, Mapping) and "text" in part for part in content)
            fix = "send one text" if only_text else "use the template of a model that reads such parts"
            yield _Suspect(("messages", index, "content"), complaint, fix, "".join(texts))
        calls = message.get("tool_calls")
        for number, call in enumerate(calls if isinstance(calls, list | tuple) else ()):
            function = call.get("function") if isinstance(call, Mapping) else None
            arguments = function.get("arguments") if isinstance(function, Mapping) else None
            if isinstance(arguments, str):
                try:
                    mended = read_json(arguments)
                except ValueError:
                    mended = {}
                path = ("messages", index, "tool_calls", number, "function", "arguments")
                complaint = "is text, and this template needs an object"
                yield _Suspect(path, complaint, "parse the text before you send it", mended)


def _mend(chat: Chat, suspects: list[_Suspect]) -> Chat:
    messages: list[Any] = list(chat.messages)
    for suspect in suspects:
        index = suspect.path[1]
        assert isinstance(index, int)
        messages[index] = _with(messages[index], suspect.path[2:], suspect.mended)
    return replace(chat, messages=messages)


def _with(value: Any, path: Path, inner: Any) -> Any:
    """A copy of `value` with `inner` at `path`."""
    if not path:
        return inner
    copy = dict(value) if isinstance(value, Mapping) else list(value)
    copy[path[0]] = _with(copy.get(path[0]) if isinstance(copy, dict) else copy[path[0]], path[1:], inner)  # type: ignore[index]
    return copy


def _first_failing(reason: str, chat: Chat, failure: Callable[[Chat], str | None]) -> int | None:
    """The index of the first message with which the chat fails for `reason`, found by halving.

    `None` if a chat with the single message "Hi" fails for the same reason.
    """
    if failure(replace(chat, messages=[{"role": "user", "content": "Hi"}])) == reason:
        return None
    good, bad = 0, len(chat.messages)
    while bad - good > 1:
        middle = (good + bad) // 2
        if failure(replace(chat, messages=chat.messages[:middle])) == reason:
            bad = middle
        else:
            good = middle
    return bad - 1


def _dotted(path: Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
