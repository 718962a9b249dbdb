"""One divergence: where A's cached text and B's prompt become different, and what the two requests have there.

B is seen with all causes found so far repaired: its request may be edited, and its first `b_done` characters may be
replaced by A's first `a_done`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from minicache.core.errors import MinicacheError
from minicache.prompts.earlier import Earlier
from minicache.prompts.prompt import Prompt, Source
from minicache.prompts.reuse import common_prefix, joined
from minicache.prompts.spans import Span, first_letters, meet
from minicache.prompts.values import Change, changes
from minicache.text.origin import Field, Key, Origin, Path, Rendered, Value

LOOK_AHEAD = 64  # runs searched for the next text of the request
MAX_HIDDEN = 256  # differences in Unicode form that are skipped in one text
TRIED = 2**24  # characters of B's prompt that are rendered again at one divergence, to try repairs
LEAST_TRIED = 32  # repairs that are tried in a prompt of any length
REACH = 32  # characters: tokens can differ this far before a difference in the text (merges within a word)


@dataclass(frozen=True, slots=True)
class Edit:
    """A repair of the request: B gets `source` in place of its own."""

    source: Source


@dataclass(frozen=True, slots=True)
class Splice:
    """A repair of the text: A's first `a_end` characters replace B's first `b_end`."""

    a_end: int
    b_end: int


@dataclass(frozen=True, slots=True)
class Retoken:
    """A repair of the tokens: these replace all tokens of B's prompt."""

    tokens: list[int]


Repair = Edit | Splice | Retoken


class Later:
    """B's prompt with the repairs so far. Its first `b_done` characters are replaced by A's first `a_done`."""

    def __init__(self, earlier: Earlier, prompt: Prompt, a_done: int = 0, b_done: int = 0) -> None:
        self.earlier, self.prompt, self.a_done, self.b_done = earlier, prompt, a_done, b_done

    @property
    def source(self) -> Source:
        return self.prompt.source

    @cached_property
    def tokens(self) -> Sequence[int]:
        if not self.a_done:
            return self.prompt.tokens
        rest = self.prompt.text[self.b_done :]
        head = self.earlier.tokens_before(self.a_done)
        if head is None:
            return joined(self.prompt.lead, self.prompt.encode(self.earlier.text[: self.a_done] + rest))
        return joined(self.earlier.tokens[:head], self.prompt.encode(rest))

    def repaired(self, repair: Repair) -> "Later | None":
        """B after one more repair; `None` if an edited request cannot be rendered, or its first `b_done` characters
        change."""
        prompt = self.prompt
        match repair:
            case Splice(a_end, b_end):
                return Later(self.earlier, prompt, a_end, b_end)
            case Retoken(tokens):
                return Later(self.earlier, Prompt(prompt.source, prompt.means, logged=tokens), self.a_done, self.b_done)
            case Edit(source):
                edited = prompt.edited(source)
                try:
                    kept = edited.text.startswith(prompt.text[: self.b_done])
                except MinicacheError:  # a template can refuse any conversation
                    return None
                return Later(self.earlier, edited, self.a_done, self.b_done) if kept else None

    @cached_property
    def site(self) -> "Site | None":
        """The next divergence; `None` if one prompt extends the other."""
        earlier, text = self.earlier, self.prompt.text
        token = common_prefix(earlier.tokens, self.tokens)
        if token in (len(earlier.tokens), len(self.tokens)):
            return None
        a_at, b_at = self._part(self.a_done, self.b_done)
        in_text = a_at < len(earlier.text) and b_at < len(text)
        if in_text and self.prompt.hides:
            start = earlier.start_of(token)
            if a_at < start:  # the normaliser hides every difference before it
                a_at, b_at = start, self.start_of(token)
        elif not in_text or earlier.has_logged_tokens or self.prompt.logged is not None:
            start, end = earlier.start_of(token), earlier.start_of(token + 1)
            if not in_text or start < a_at - REACH or (end <= a_at and earlier.differs_from_text(token)):
                return Site(self, start, max(b_at - (a_at - start), 0), token, in_tokens=True)
        return Site(self, a_at, b_at, token, in_tokens=False)

    def _part(self, a_done: int, b_done: int) -> tuple[int, int]:
        length = common_prefix(self.earlier.text, self.prompt.text, a_done, b_done)
        return a_done + length, b_done + length

    def start_of(self, token: int) -> int:
        """The character of B's own text at which token number `token` begins; it must come after the replaced part."""
        encode = self.prompt.means.tokenizer.encode_with_offsets
        head = self.earlier.tokens_before(self.a_done) if self.a_done else len(self.prompt.lead)
        rest = self.prompt.text[self.b_done :]
        if head is not None:
            return self.b_done + encode(rest)[1][token - head][0]
        whole = encode(self.earlier.text[: self.a_done] + rest)[1]
        return whole[token - len(self.prompt.lead)][0] - self.a_done + self.b_done


@dataclass(frozen=True)
class Site:
    """A divergence at character `a_at` of A's text and `b_at` of B's, and at token number `token` of both.

    `in_tokens`: the texts agree here and the tokens do not.
    """

    later: Later
    a_at: int
    b_at: int
    token: int
    in_tokens: bool

    @property
    def earlier(self) -> Earlier:
        return self.later.earlier

    @property
    def a(self) -> Source:
        return self.earlier.source

    @property
    def b(self) -> Source:
        return self.later.source

    @property
    def a_text(self) -> str:
        return self.earlier.text

    @property
    def b_text(self) -> str:
        return self.later.prompt.text

    @property
    def in_answer(self) -> bool:
        """Whether A's side is in its generation prompt or in the generated text."""
        return self.a_at >= self.earlier.generation_start

    @cached_property
    def a_origin(self) -> Origin | None:
        """The origin of A's character; `None` in the generated text."""
        return None if self.a_at >= self.earlier.answer_start else self.earlier.prompt.rendered.origin_at(self.a_at)

    @cached_property
    def b_origin(self) -> Origin | None:
        """The origin of B's character; `None` at the end of B's text."""
        return None if self.b_at >= len(self.b_text) else self.later.prompt.rendered.origin_at(self.b_at)

    @cached_property
    def a_path(self) -> Path | None:
        """The path of the first value of the request at the divergence or after it, on A's side."""
        return None if self.a_origin is None else _next_path(self.earlier.prompt.rendered, self.a_at)

    @cached_property
    def b_path(self) -> Path | None:
        """The same on B's side."""
        return _next_path(self.later.prompt.rendered, self.b_at)

    @cached_property
    def paths(self) -> list[Path]:
        return [path for path in (self.a_path, self.b_path) if path is not None]

    @cached_property
    def said(self) -> tuple[list[int], list[int]]:
        """The messages of A and of B as numbers: two messages have equal numbers if `values.saying` of both is
        equal."""
        a, b = (list(map(self.earlier.number_of, source.messages)) for source in (self.a, self.b))
        return a, b

    @property
    def patience(self) -> int:
        """How many values that differ are tried as a cause: each costs one rendering or more, so a long prompt has
        fewer."""
        return max(TRIED // (len(self.b_text) + 1), LEAST_TRIED)

    def changes(self) -> Iterator[Change]:
        """The values that differ in the message or tool at the divergence, those of its own field first; then the
        values that differ in earlier messages."""
        here = dict.fromkeys(path[:2] for path in self.paths if path[0] != "template_kwargs")
        found = [self._visible(change) for place in here for change in self._changes_at(place)]
        yield from sorted(found, key=lambda change: not any(_related(change.path, path) for path in self.paths))
        indices = [path[1] for path in here if path[0] == "messages" and isinstance(path[1], int)]
        for index in range(min(indices, default=0) - 1, -1, -1):
            yield from map(self._visible, self._changes_at(("messages", index)))

    def _visible(self, change: Change) -> Change:
        """The change, with B's text changed to A's wherever the tokenizer's normaliser hides the difference, up to the
        first difference in tokens."""
        a, b, encode = change.a, change.b, self.later.prompt.encode
        if self.later.prompt.hides and isinstance(a, str) and isinstance(b, str):
            for _ in range(MAX_HIDDEN):
                start, a_end, b_end = first_letters(a, b)
                if a == b or encode(a[start:a_end]) != encode(b[start:b_end]):
                    break
                b = b[:start] + a[start:a_end] + b[b_end:]
        return Change(change.path, a, b)

    def _changes_at(self, place: Path) -> Iterator[Change]:
        a: Any = self.a.payload.get(str(place[0]))
        b: Any = self.b.payload.get(str(place[0]))
        if len(place) == 2 and isinstance(place[1], int):
            if a is None or b is None or place[1] >= min(len(a), len(b)):
                return
            a, b = a[place[1]], b[place[1]]
        else:
            place = place[:1]
        yield from changes(a, b, place)

    @cached_property
    def span(self) -> Span:
        """The difference in the rendered texts: from the divergence to the next text of the request that both have."""
        anchor = self._anchor()
        if anchor is None:
            return meet(self.a_text, self.b_text, self.a_at, self.b_at) or Span(
                self.a_at, len(self.a_text), self.b_at, len(self.b_text)
            )
        a_end, b_end = anchor
        while a_end > self.a_at and b_end > self.b_at and self.a_text[a_end - 1] == self.b_text[b_end - 1]:
            a_end, b_end = a_end - 1, b_end - 1
        return Span(self.a_at, a_end, self.b_at, b_end)

    def _anchor(self) -> tuple[int, int] | None:
        """The closest place at which both sides have the same character of the same field. Characters of messages are
        preferred: messages keep their order, and a template moves other parts to places between them."""
        best: tuple[bool, int, int, int] | None = None
        rendered = self.later.prompt.rendered
        first = rendered.runs.index_at(self.b_at)
        for run in rendered.runs[first : first + LOOK_AHEAD]:
            if not isinstance(run.origin, Field):
                continue
            for other in self.earlier.runs_of_path.get(run.origin.path, ()):
                assert isinstance(other.origin, Field)
                # Character `c` of the field stands at `a_zero + c` in A's text and at `b_zero + c` in B's.
                a_zero, b_zero = other.start - other.origin.offset, run.start - run.origin.offset
                c = max(run.origin.offset, other.origin.offset, self.a_at - a_zero, self.b_at - b_zero)
                if a_zero + c < other.end and b_zero + c < run.end:
                    cost = a_zero + c - self.a_at + b_zero + c - self.b_at
                    found = (run.origin.path[0] != "messages", cost, a_zero + c, b_zero + c)
                    best = found if best is None else min(best, found)
        return None if best is None else best[2:]


def _next_path(rendered: Rendered, at: int) -> Path | None:
    if at >= len(rendered.text):
        return None
    index = rendered.runs.index_at(at)
    for run in rendered.runs[index : index + LOOK_AHEAD]:
        if isinstance(run.origin, Field | Key | Value):
            return run.origin.path
    return None


def _related(one: Path, other: Path) -> bool:
    length = min(len(one), len(other))
    return one[:length] == other[:length]
