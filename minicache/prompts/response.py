"""What a log knows of an answer: the tokens that were generated, and how many the engine says it reused."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from minicache.prompts.errors import BadLog
from minicache.prompts.values import MISSING, value_at
from minicache.text.origin import Path

# The first that is there counts. vLLM with `return_token_ids`; SGLang's native API.
PROMPT_IDS: tuple[Path, ...] = (("prompt_token_ids",), ("choices", 0, "prompt_token_ids"), ("input_ids",))
OUTPUT_IDS: tuple[Path, ...] = (("choices", 0, "token_ids"), ("output_ids",), ("token_ids",))
OUTPUT_TEXT: tuple[Path, ...] = (("choices", 0, "text"), ("text",))
CACHED: tuple[Path, ...] = (
    ("usage", "prompt_tokens_details", "cached_tokens"),  # OpenAI chat, vLLM, SGLang
    ("usage", "input_tokens_details", "cached_tokens"),  # OpenAI Responses
    ("usage", "cache_read_input_tokens"),  # Anthropic
    ("usage", "prompt_cache_hit_tokens"),  # DeepSeek
    ("meta_info", "cached_tokens"),  # SGLang, native
)


@dataclass(frozen=True, slots=True)
class Response:
    """Everything is `None` where the log does not say: a field that is absent is not zero."""

    prompt_ids: list[int] | None = None
    output_ids: list[int] | None = None
    output_text: str | None = None  # raw, as the engine had it: with think blocks and calls still in it
    cached_tokens: int | None = None


NO_RESPONSE = Response()


def read_response(value: Any, where: str) -> Response:
    """Raises `BadLog` if `value`, or token ids in it, are of the wrong type."""
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


def _ids(value: Any, paths: tuple[Path, ...], where: str) -> list[int] | None:
    ids = _first(value, paths)
    if ids is None:
        return None
    if not isinstance(ids, list) or any(type(id) is not int or id < 0 for id in ids):
        raise BadLog(f"{where}: response.{paths[0][-1]} must be a list of token ids")
    return ids


def _first(value: Any, paths: tuple[Path, ...]) -> Any:
    for path in paths:
        found = value_at(value, path)
        if found is not MISSING and found is not None:
            return found
    return None
