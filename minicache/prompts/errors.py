"""The errors of a request log. Each message is one sentence that names the file, line or field."""

from minicache.text.errors import QuotingError


class BadLog(QuotingError):
    """A file holds no request, or no request with this line number or id. The message says what to give instead."""


class CannotCompare(QuotingError):
    """Two requests that can never share KV, such as requests for different models, or that cannot both be rendered."""
