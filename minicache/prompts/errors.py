"""What can go wrong with a request log: one sentence each, naming the file, line or field."""

from minicache.text.errors import QuotingError


class BadLog(QuotingError):
    """A file is not a request, or has none of that line or id; the sentence names the file and what to do."""


class CannotCompare(QuotingError):
    """Two requests that no cache could ever share, such as of different models, or that cannot both be rendered."""
