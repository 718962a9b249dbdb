"""Logged requests, from files.

    {"messages": […], …}                                            a body as it was sent
    {"time": …, "id": …, "body": {…}, "response": {…}}              a body with its time, id and response

A JSON Lines log has one of these on each line. Times are ISO 8601, or seconds or milliseconds since 1970.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from minicache.common.files import require_end
from minicache.common.json_reader import read_json
from minicache.prompts.bodies import Body, read_body
from minicache.prompts.errors import BadLog
from minicache.prompts.values import MISSING, value_at
from minicache.text.origin import Path as FieldPath

BODY_KEYS = ("messages", "input", "prompt")
MOST_DIGITS = 18  # of a line's number
MILLISECONDS_FROM = 10**11  # seconds reach this number in the year 5138

# Of these paths in a response the first that exists counts: vLLM with `return_token_ids`, then SGLang's native API.
PROMPT_IDS: tuple[FieldPath, ...] = (("prompt_token_ids",), ("choices", 0, "prompt_token_ids"), ("input_ids",))
OUTPUT_IDS: tuple[FieldPath, ...] = (("choices", 0, "token_ids"), ("output_ids",), ("token_ids",))
OUTPUT_TEXT: tuple[FieldPath, ...] = (("choices", 0, "text"), ("text",))
CACHED: tuple[FieldPath, ...] = (
    ("usage", "prompt_tokens_details", "cached_tokens"),  # OpenAI chat, vLLM, SGLang
    ("usage", "input_tokens_details", "cached_tokens"),  # OpenAI Responses
    ("usage", "cache_read_input_tokens"),  # Anthropic
    ("usage", "prompt_cache_hit_tokens"),  # DeepSeek
    ("meta_info", "cached_tokens"),  # SGLang, native
)


@dataclass(frozen=True, slots=True)
class Response:
    """The tokens that were generated, and the number that the engine says it reused. A field that the log does not have
    is `None`, not zero."""

    prompt_ids: list[int] | None = None
    output_ids: list[int] | None = None
    output_text: str | None = None  # raw, as the engine generated it, with reasoning and calls in it
    cached_tokens: int | None = None


NO_RESPONSE = Response()


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request of a log. `where` is its name in messages: a file, or a file and a line."""

    where: str
    body: Body
    id: str | None = None
    time: datetime | None = None
    response: Response = NO_RESPONSE


def read_file(path: Path) -> LoggedRequest:
    """The one request in a JSON file. Raises `BadLog`."""
    text = _read(path)
    try:
        value = read_json(text)
    except ValueError as error:
        if _is_json(text.partition("\n")[0]):
            raise BadLog(
                f"{path} has a request on each line: give the file once, then the line numbers or ids of two requests"
            ) from None
        raise BadLog(f"{path} is not valid JSON: {error}") from None
    return to_request(value, str(path))


def _is_json(line: str) -> bool:
    try:
        return isinstance(read_json(line), Mapping)
    except ValueError:
        return False


def read_pair(path: Path, first: str, second: str) -> tuple[LoggedRequest, LoggedRequest]:
    """Two requests of a JSON Lines file, each named by its line number, from 1, or by its id. Raises `BadLog`."""
    # Only this character ends a line: a text in JSON may hold other line ends, such as U+2028.
    lines = _read(path).removesuffix("\n").split("\n")
    return _find(path, lines, first), _find(path, lines, second)


def _find(path: Path, lines: list[str], name: str) -> LoggedRequest:
    """The request with the id `name`, or else the one on line `name`: an id can look like a line number."""
    for number, line in enumerate(lines, 1):
        if name in line and line.strip():
            value = _parse_line(path, number, line)
            if isinstance(value, Mapping) and str(value.get("id")) == name:
                return to_request(value, f"{path} line {number}")
    if name.isdecimal() and len(name) <= MOST_DIGITS and 1 <= int(name) <= len(lines) and lines[int(name) - 1].strip():
        number = int(name)
        return to_request(_parse_line(path, number, lines[number - 1]), f"{path} line {number}")
    raise BadLog(f"{path} has {len(lines)} lines, and no request with the id or line number {name!r}", repr(name))


def _parse_line(path: Path, number: int, line: str) -> Any:
    try:
        return read_json(line)
    except ValueError as error:
        raise BadLog(f"{path} line {number} is not valid JSON: {error}") from None


def to_request(value: Any, where: str) -> LoggedRequest:
    """A request from its JSON value. Raises `BadLog`, which names `where`."""
    if not isinstance(value, Mapping):
        raise BadLog(f"{where} holds {_kind(value)}, not a request: give a body, or an object with a body")
    if "body" not in value:
        if not any(key in value for key in BODY_KEYS):
            keys = list(map(repr, list(value)[:6]))
            listed = ", ".join(keys) or "none"
            raise BadLog(
                f"{where} is not a request of a known form (its keys: {listed}): give a body with messages, input or "
                'prompt, alone or as {"time": …, "id": …, "body": {…}, "response": {…}}',
                *keys,
            )
        return LoggedRequest(where, read_body(value, where))
    if not isinstance(value["body"], Mapping):
        raise BadLog(f"{where}: body must be an object, not {_kind(value['body'])}")
    id = value.get("id")
    return LoggedRequest(
        where,
        read_body(value["body"], where),
        None if id is None else str(id),
        _time(value.get("time"), where),
        _response(value.get("response"), where),
    )


def _response(value: Any, where: str) -> Response:
    """Raises `BadLog` if `value`, or token ids in it, have the wrong type."""
    if value is None:
        return NO_RESPONSE
    if not isinstance(value, Mapping):
        raise BadLog(f"{where}: response must be an object")
    text, cached = _first(value, OUTPUT_TEXT), _first(value, CACHED)
    return Response(
        _ids(value, PROMPT_IDS, where),
        _ids(value, OUTPUT_IDS, where),
        text if isinstance(text, str) else None,
        cached if isinstance(cached, int) and not isinstance(cached, bool) else None,
    )


def _ids(value: Any, paths: tuple[FieldPath, ...], where: str) -> list[int] | None:
    ids = _first(value, paths)
    if ids is None:
        return None
    if not isinstance(ids, list) or any(type(id) is not int or id < 0 for id in ids):
        raise BadLog(f"{where}: response.{paths[0][-1]} must be a list of token ids")
    return ids


def _first(value: Any, paths: tuple[FieldPath, ...]) -> Any:
    for path in paths:
        found = value_at(value, path)
        if found is not MISSING and found is not None:
            return found
    return None


def _time(value: Any, where: str) -> datetime | None:
    """A time keeps its time zone, because a template writes the hour that its server's clock showed."""
    if value is None:
        return None
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if value >= MILLISECONDS_FROM else value, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    expected = "ISO 8601 (2026-03-01T10:00:07Z) or seconds since 1970"
    raise BadLog(f"{where}: time must be {expected}, not {value!r}", repr(value))


def _read(path: Path) -> str:
    try:
        text = require_end(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise BadLog(f"{path} is not text in UTF-8: give the JSON of a request") from None
    except OSError as error:
        raise BadLog(f"{path} cannot be read: {error.strerror or error}") from None
    if not text.strip():
        raise BadLog(f"{path} is empty: give the JSON of a request")
    return text


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
