"""What can go wrong with text: one sentence each, naming the message and field, or the file."""

from minicache.core.errors import MinicacheError


class QuotingError(MinicacheError):
    """A sentence, and the `quotes` in it: the pieces that came out of a request, as they are written there."""

    def __init__(self, sentence: str, *quotes: str) -> None:
        super().__init__(sentence)
        self.quotes = quotes


class BadMessage(QuotingError):
    """A chat message or tool cannot be rendered; the sentence names its index and the field."""


class TemplateFailed(QuotingError):
    """A chat template does not parse, or raised an error while it rendered.

    `path` is the field of the request that it failed on, such as ("messages", 2, "content"), if that is known; `fix` is
    what to do about it then.
    """

    path: tuple[str | int, ...] | None = None
    fix: str | None = None


class TokenizerFailed(MinicacheError):
    """A tokenizer's files are missing or unreadable, or a token id is outside its vocabulary."""
