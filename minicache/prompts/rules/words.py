"""One value of the request that differs, by the words in it: first by their form (a time, an id, a number), then by
their place.

A detector of a form looks at the word at the first difference, on both sides. It continues through the same field while
it finds more words of its form, because a request with one id in its system prompt often has three.
"""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from minicache.prompts.kinds import Kind, Layer
from minicache.prompts.reuse import common_prefix
from minicache.prompts.rules.rule import (
    APPEND,
    CUT_RARELY,
    SYSTEM_ROLES,
    FieldRule,
    Found,
    counted,
    in_head,
    role_of,
    without,
    written,
)
from minicache.prompts.site import Edit, Site
from minicache.prompts.spans import Span, difference
from minicache.prompts.values import MISSING, Change

MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
TIME = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?: ?[AP]M)?"
DATE = (
    rf"(?:\d{{4}}[-/.]\d{{2}}[-/.]\d{{2}}|\d{{1,2}}\.? {MONTH}\.?,? \d{{4}}|"
    rf"{MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}})"
)
CLOCK = re.compile(
    rf"(?<![\w.])(?:{DATE}(?:(?:T|,? (?:at )?){TIME}(?:Z|[+-]\d{{2}}:?\d{{2}})?)?|{TIME}|\b\d{{10}}(?:\d{{3}})?\b)"
)
EPOCHS = range(946_684_800, 4_102_444_800)  # 2000 to 2100
NEAR = 2 * 86_400  # seconds: a number this close to the logged time of its request is a time
NEARBY = 256  # characters: a word must begin and end within this distance from the difference in it
WORD = re.compile(r"[0-9A-Za-z_-]+")
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)
NUMBER = re.compile(r"\d+(?:[.,_]\d+)*%?(?![A-Za-z]{4}|[A-Za-z]*\d)")  # a unit may follow, but not the rest of an id
CHECKBOX = re.compile(r"\[[ xX~-]?\]")
REVISION = re.compile(r"(?:commit|revision|rev|sha\d*|digest|checksum|git|HEAD)\W{0,3}$", re.I)
OPEN_TAG = re.compile(r"<([A-Za-z][\w:.-]*)(?:\s[^<>]*)?>")
MANY = 8  # a text with this many differences counts as rewritten
CUT = re.compile(  # the bracket must be closed: else each of many such words is looked for an end
    r"\.\.\.|…|\[(?=[^\]]*+\])[^\]]*\b(?:cut|truncated|omitted|removed|cleared|trimmed|elided|old)\b[^\]]*\]", re.I
)


class _Words(NamedTuple):
    """The words at one place: `a[a_start:a_end]` in A's text and `b[b_start:b_end]` in B's."""

    a_start: int
    a_end: int
    b_start: int
    b_end: int


def clock(site: Site, change: Change) -> Iterator[Found]:
    """Both words are times or dates."""
    yield from _same_kind(site, change, partial(_clock_words, site))


def nonce(site: Site, change: Change) -> Iterator[Found]:
    """Both words have the same length and look random: hexadecimal, base 62, a UUID."""
    yield from _same_kind(site, change, _nonce_words)


def counter(site: Site, change: Change) -> Iterator[Found]:
    """Both words are numbers, a checkbox was ticked, or some lines between a pair of tags changed."""
    found = False
    for each in _same_kind(site, change, _counter_words):
        found = True
        yield each
    if not found and isinstance(change.a, str) and isinstance(change.b, str):
        yield from _changed_lines(site, change, change.a, change.b)


def _same_kind(site: Site, change: Change, words_at: Callable[["_Place"], _Words | None]) -> Iterator[Found]:
    """One finding for all differences of the same form that follow each other in a field."""
    a, b = change.a, change.b
    if not (isinstance(a, str) and isinstance(b, str)):
        return
    pairs, pieces, a_done, b_done = [], [], 0, 0
    offset = common_prefix(a, b)
    while (same := common_prefix(a, b, a_done, b_done)) < max(len(a) - a_done, len(b) - b_done):
        words = words_at(_Place(a, b, a_done + same, b_done + same))
        if words is None:
            break
        ours, theirs = a[words.a_start : words.a_end], b[words.b_start : words.b_end]
        if ours == theirs or a[words.a_end : words.a_end + 1] != b[words.b_end : words.b_end + 1]:
            break  # more than this word differs
        pairs.append((ours, theirs))
        pieces += [b[b_done : words.b_start], ours]
        a_done, b_done = words.a_end, words.b_end
    if pairs:
        edit = Edit(site.b.with_value(change.path, "".join([*pieces, b[b_done:]])))
        yield Found(edit, change.path, offset, *pairs[0], more=tuple(pairs[1:]))


class _Place(NamedTuple):
    """Where two texts diverge: character `a_at` of `a` and `b_at` of `b`, both after a common piece."""

    a: str
    b: str
    a_at: int
    b_at: int

    def words(self, pattern: re.Pattern[str]) -> _Words | None:
        """The matches around the place on both sides, if both begin at the same distance before it."""
        ours, theirs = _match_around(pattern, self.a, self.a_at), _match_around(pattern, self.b, self.b_at)
        if ours is None or theirs is None or self.a_at - ours[0] != self.b_at - theirs[0]:
            return None
        return _Words(*ours, *theirs)


def _clock_words(site: Site, place: _Place) -> _Words | None:
    words = place.words(CLOCK)
    if words is None:
        return None
    ours, theirs = place.a[words.a_start : words.a_end], place.b[words.b_start : words.b_end]
    for text, source in ((ours, site.a), (theirs, site.b)):
        if text.isdecimal() and not _is_epoch(text, source.time if source.logged_time else None):
            return None
    return words


def _is_epoch(digits: str, time: datetime | None) -> bool:
    seconds = int(digits[:10])
    if time is None:
        return seconds in EPOCHS
    return abs(seconds - (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()) < NEAR


def _match_around(pattern: re.Pattern[str], text: str, at: int) -> tuple[int, int] | None:
    """The match that holds character `at` or ends there; `None` if there is no match or it may continue beyond
    `NEARBY`."""
    end = min(at + NEARBY, len(text))
    for match in pattern.finditer(text, max(at - NEARBY, 0), end):
        if match.start() <= at <= match.end():
            return match.span() if match.end() < end or end == len(text) else None
        if match.start() > at:
            break
    return None


def _nonce_words(place: _Place) -> _Words | None:
    for pattern in (UUID, WORD):
        words = place.words(pattern)
        if words is not None:
            ours, theirs = place.a[words.a_start : words.a_end], place.b[words.b_start : words.b_end]
            before = place.a[max(words.a_start - NEARBY, 0) : words.a_start]
            if (
                len(ours) == len(theirs)
                and _looks_random(ours)
                and _looks_random(theirs)
                and not REVISION.search(before)
            ):
                return words
    return None


def _looks_random(word: str) -> bool:
    """Whether a word mixes letters and digits, or is a number too long for a count."""
    digits = sum(map(str.isdecimal, word))
    return len(word) >= 3 and digits > 0 and (digits < len(word) or digits >= 8) and not word.isalpha()


def _counter_words(place: _Place) -> _Words | None:
    return place.words(CHECKBOX) or place.words(NUMBER)


def _changed_lines(site: Site, change: Change, a: str, b: str) -> Iterator[Found]:
    """Lines were added or removed between equal tags, and at least half of the lines stayed; or all the lines that
    differ are checkboxes."""
    start = common_prefix(a, b)
    tags = _around(a, b, start)
    if tags is not None:
        ours, theirs = (text.splitlines() for text in _inside(a, b, tags))
        kept = set(ours) & set(theirs)
        if not (kept and 2 * len(kept) >= min(len(set(ours)), len(set(theirs)))):
            return
    else:
        span = _whole_lines(a, b, difference(a, b))
        ours, theirs = a[span.a_start : span.a_end].splitlines(), b[span.b_start : span.b_end].splitlines()
        if not all(CHECKBOX.match(line.lstrip(" -*")) for line in (*ours, *theirs) if line.strip()):
            return
    came, went = without(theirs, ours), without(ours, theirs)
    span = difference(a, b)
    edit = Edit(site.b.with_value(change.path, b[:start] + a[start : span.a_end] + b[span.b_end :]))
    texts = a[start : span.a_end], b[start : span.b_end]
    yield Found(edit, change.path, start, *texts, f"{counted(len(came), 'line')} added, {len(went)} removed")


def _whole_lines(a: str, b: str, span: Span) -> Span:
    start = a.rfind("\n", 0, span.a_start) + 1
    a_end, b_end = _end_of_line(a, span.a_end), _end_of_line(b, span.b_end)
    return Span(start, a_end, start, b_end)


def _end_of_line(text: str, at: int) -> int:
    if text[at - 1 : at] == "\n":
        return at
    end = text.find("\n", at)
    return end if end >= 0 else len(text)


def _around(a: str, b: str, at: int) -> tuple[int, int, int] | None:
    """The innermost pair of tags around `at` on both sides: where its content begins, where it ends in A, and in B."""
    open_tags = list(OPEN_TAG.finditer(a, 0, at))
    for match in reversed(open_tags[-16:]):
        close = f"</{match[1]}>"
        if a.find(close, match.end(), at) >= 0:
            continue
        ends = a.find(close, at), b.find(close, at)
        if min(ends) >= 0:
            return match.end(), *ends
    return None


def _inside(a: str, b: str, tags: tuple[int, int, int]) -> tuple[str, str]:
    return a[tags[0] : tags[1]], b[tags[0] : tags[2]]


def retrieval_in_prefix(site: Site, change: Change) -> Iterator[Found]:
    """Different text between the same tags, in the part that every later turn repeats."""
    if isinstance(change.a, str) and isinstance(change.b, str) and in_head(site, change.path):
        at = common_prefix(change.a, change.b)
        tags = _around(change.a, change.b, at)
        if tags is not None:
            repaired = change.b[: tags[0]] + change.a[tags[0] : tags[1]] + change.b[tags[2] :]
            edit = Edit(site.b.with_value(change.path, repaired))
            yield Found(edit, change.path, at, *_inside(change.a, change.b, tags))


def shortened(site: Site, change: Change) -> Iterator[Found]:
    """An old message was cut to its beginning, replaced by a placeholder, or lost a field."""
    if change.path[0] != "messages" or not isinstance(change.a, str) or role_of(site, change.path) in SYSTEM_ROLES:
        return
    if change.b is MISSING or change.b is None:
        yield _first_span(site, change, change.a, "")
    elif isinstance(change.b, str) and len(change.b) < len(change.a):
        span = difference(change.a, change.b)
        if change.a.startswith(change.b) or CUT.match(change.b[span.b_start : span.b_end]) or _is_placeholder(change.b):
            yield _first_span(site, change, change.a, change.b)


def _is_placeholder(text: str) -> bool:
    match = CUT.search(text) if len(text) < 200 else None
    return match is not None and match.end() - match.start() > 2


def branch(site: Site, change: Change) -> Iterator[Found]:
    """A turn of the history is different: B does not continue A, both continue the same earlier conversation."""
    if change.path[0] == "messages" and role_of(site, change.path) not in SYSTEM_ROLES:
        yield _first_span(site, change, written(change.a), written(change.b))


def _mended(a: str, b: str, span: Span) -> str:
    return b[: span.b_start] + a[span.a_start : span.a_end] + b[span.b_end :]


def _is_rewritten(a: str, b: str) -> bool:
    """Whether the texts have more than `MANY` differences."""
    for _ in range(MANY):
        b = _mended(a, b, difference(a, b))
    return a != b


def prompt_edit(site: Site, change: Change) -> Iterator[Found]:
    """The system prompt or a tool is different, and no rule before this one knows why."""
    yield _first_span(site, change, written(change.a), written(change.b))


def _first_span(site: Site, change: Change, a: str, b: str) -> Found:
    """A finding whose repair puts A's text in place of B's, up to where the two are equal again; the whole value if the
    text was rewritten."""
    span = difference(a, b)
    value = change.a
    if isinstance(change.a, str) and isinstance(change.b, str) and not _is_rewritten(a, b):
        value = _mended(a, b, span)
    edit = Edit(site.b.with_value(change.path, value))
    return Found(edit, change.path, span.a_start, a[span.a_start : span.a_end], b[span.b_start : span.b_end])


RULES: tuple[FieldRule, ...] = (
    FieldRule(
        Kind.clock, Layer.payload, clock,
        "Write only the day, or move the time into the newest user turn or into a tool.",
    ),
    FieldRule(
        Kind.nonce, Layer.payload, nonce,
        "Remove the id at the gateway, or keep one value for the session; a value that must change belongs in the "
        "newest user turn.",
    ),
    FieldRule(Kind.counter, Layer.payload, counter, APPEND),
    FieldRule(
        Kind.retrieval_in_prefix, Layer.payload, retrieval_in_prefix,
        "Put the text retrieved for a question into the user turn that asks it, and leave it there in later requests.",
    ),
    FieldRule(Kind.history_rewrite, Layer.payload, shortened, CUT_RARELY),
    FieldRule(
        Kind.branch, Layer.payload, branch,
        "Nothing to repair if a user edited the turn or asked for a new answer; else send earlier turns unchanged.",
    ),
    FieldRule(
        Kind.prompt_edit, Layer.payload, prompt_edit,
        "Keep the system prompt and the tools unchanged, and put text that differs between requests after them.",
    ),
)  # fmt: skip
