"""What can go wrong in the core: every error a caller can act on is a `ValueError` of its own name."""

import math


class MinicacheError(ValueError):
    """Base of every error that minicache raises on purpose: one sentence that says what, where and what to do."""


class InvalidArgument(MinicacheError):
    """An argument is out of range or of the wrong type; the message names it. Nothing has changed."""


class StaleMatch(MinicacheError):
    """A `Match` was used after the cache had changed; look the request up again."""


class UnknownRequest(MinicacheError):
    """The request is not one that this cache or scheduler knows."""


class RequestTooLong(MinicacheError):
    """The request can never fit: its prompt and output need more blocks than the whole pool has."""


class CorruptState(AssertionError):
    """`check()` found a count, reference or size that does not follow from the rest: a bug in the cache."""


def require_int(name: str, value: object, minimum: int | None = None) -> int:
    """`value` as an int, of at least `minimum` if there is one; raises `InvalidArgument` naming `name` otherwise."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidArgument(f"{name} must be an integer, not {value!r}")
    if minimum is not None and value < minimum:
        raise InvalidArgument(f"{name} must be at least {minimum}, not {value}")
    return value


def require_number(name: str, value: object) -> float:
    """`value` as a number, infinities and NaN excluded; raises `InvalidArgument` naming `name` otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidArgument(f"{name} must be a number, not {value!r}")
    return value


def require_text(name: str, value: object) -> str:
    """`value` as text that can be written in UTF-8; raises `InvalidArgument` naming `name` otherwise.

    JSON can carry half of a surrogate pair. Such a text has no bytes, so it could not become part of a cache key.
    """
    if not isinstance(value, str):
        raise InvalidArgument(f"{name} must be text, not {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"{name} must be text, not {value!r}: {error.reason}") from None
    return value
