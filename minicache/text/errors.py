"""The errors of text. Each message is one sentence that names the chat message and field, or the file."""

from minicache.core.errors import MinicacheError


class QuotingError(MinicacheError):
    """An error whose sentence quotes a request. `quotes` are the quoted pieces, exactly as in the sentence, so that a
    report can hide them."""

    def __init__(self, sentence: str, *quotes: str) -> None:
        super().__init__(sentence)
        self.quotes = quotes


class BadMessage(QuotingError):
    """A chat message or tool cannot be rendered. The sentence names its index and the field."""


class TemplateFailed(QuotingError):
    """A chat template does not parse, or raised an error while it rendered.

    `path` is the field of the request on which it failed, such as ("messages", 2, "content"), and `fix` the advice for
    this field; both are `None` if they are not known.
    """

    path: tuple[str | int, ...] | None = None
    fix: str | None = None


class TemplateTooCostly(TemplateFailed):
    """A chat template used up its budget of seconds and characters (see `budget.py`)."""


class TokenizerFailed(QuotingError):
    """A tokenizer's files are missing or unreadable, a token id is outside its vocabulary, or the tokenizers library
    failed on a text."""
