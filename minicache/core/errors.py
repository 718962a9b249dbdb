"""The errors of the core: each error that a caller can act on has its own subclass of `ValueError`."""

import math


class MinicacheError(ValueError):
    """Base of every error that minicache raises on purpose. Its message is one sentence: what is wrong, where, and what
    the caller can do."""


class InvalidArgument(MinicacheError):
    """An argument is out of range or of the wrong type; the message names it. The call changed nothing."""


class StaleMatch(MinicacheError):
    """A `Match` was used after the cache had changed. Look the request up again."""


class UnknownRequest(MinicacheError):
    """This cache or scheduler does not know the request."""


class RequestTooLong(MinicacheError):
    """The request can never run: its prompt and its longest output need more blocks than the whole pool has."""


class CorruptState(AssertionError):
    """`check()` found a count, reference or size that disagrees with a recount: a bug in the cache."""


def require_int(name: str, value: object, minimum: int | None = None) -> int:
    """`value`, if it is an int (not a bool) and at least `minimum`. Raises `InvalidArgument`, which names `name`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidArgument(f"{name} must be an integer, not {value!r}")
    if minimum is not None and value < minimum:
        raise InvalidArgument(f"{name} must be at least {minimum}, not {value}")
    return value


def require_number(name: str, value: object) -> float:
    """`value`, if it is a finite int or float. Raises `InvalidArgument`, which names `name`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidArgument(f"{name} must be a number, not {value!r}")
    return value


def require_text(name: str, value: object) -> str:
    """`value`, if it is text that UTF-8 can encode. Raises `InvalidArgument`, which names `name`.

    JSON can carry half of a surrogate pair. UTF-8 cannot encode it, so such a text cannot be part of a cache key.
    """
    if not isinstance(value, str):
        raise InvalidArgument(f"{name} must be text, not {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"{name} must be text, not {value!r}: {error.reason}") from None
    return value
