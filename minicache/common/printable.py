"""Text that a terminal can show and a stream can encode."""


def printable(text: str, keep: str = "") -> str:
    """The text with each unprintable character as its escape (`\\n`, `\\x1b`), except for the characters of `keep`.

    A terminal then obeys nothing in the text, and lone surrogates can be encoded.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else repr(char)[1:-1] for char in text)
