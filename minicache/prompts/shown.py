"""How the text of a request is shown: on one line, shortened, or as a hash.

Each report makes its own key for the hashes and forgets it, because a hash without a key would confirm a guessed
prompt. Within one report equal texts have equal hashes.
"""

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from minicache.common.printable import printable, without_middle
from minicache.prompts.values import text_of_path
from minicache.text.origin import Path

# With `redact` a path shows keys that APIs name, and hashes all others. The arguments of a template are named by its
# author: all keys below these are hashed.
ARGUMENTS = ("chat_template_kwargs", "template_kwargs")
KNOWN_KEYS = frozenset(
    [
        "additionalProperties",
        "arguments",
        "cache_control",
        "cache_salt",
        "chat_template_kwargs",
        "content",
        "description",
        "documents",
        "enum",
        "extra_key",
        "function",
        "id",
        "image_url",
        "input",
        "input_schema",
        "instructions",
        "items",
        "lora_path",
        "lora_request",
        "messages",
        "name",
        "output",
        "parameters",
        "prompt",
        "prompt_logprobs",
        "properties",
        "reasoning",
        "reasoning_content",
        "reasoning_effort",
        "required",
        "role",
        "summary",
        "system",
        "text",
        "thinking",
        "tool_call_id",
        "tool_calls",
        "tool_use_id",
        "tools",
        "type",
    ]
)


@dataclass(frozen=True)
class Shown:
    """Shows texts and paths; with `redact`, as hashes."""

    redact: bool = False
    key: bytes = field(default_factory=lambda: os.urandom(16))

    def text(self, text: str) -> str:
        """`text`, or its hash."""
        return self.hash(text) if self.redact and text else text

    def line(self, text: str, limit: int = 400) -> str:
        """`text` on one line, without its middle if it has more than `limit` characters; or its hash."""
        if self.redact:
            return self.text(text)
        return _one_line(text, limit)

    def path(self, path: Path) -> str:
        if self.redact:
            known = frozenset(ARGUMENTS) if path[:1] and path[0] in ARGUMENTS else KNOWN_KEYS
            path = tuple(key if isinstance(key, int) or key in known else self.hash(key) for key in path)
        return text_of_path(path)

    def sentence(self, sentence: str, quotes: Iterable[str]) -> str:
        """The sentence of an error on one line; with `redact`, each of its `quotes` from a request as a hash."""
        for quote in sorted(filter(None, quotes), key=len, reverse=True) if self.redact else ():
            sentence = sentence.replace(quote, self.hash(quote))
        return _one_line(sentence, 1000)

    def hash(self, text: str) -> str:
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4, key=self.key).hexdigest()
        return f"#{digest} ({len(text):,} characters)"


def _one_line(text: str, limit: int) -> str:
    return printable(without_middle(text, limit))
