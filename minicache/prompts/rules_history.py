"""The list of messages: cut, summarised, sent anew. Messages are compared by what they say (see `said`).

A   s  u0 a1 u2 a3 u4                     A   s  u0 a1 u2 a3 u4              A   s  u0 a1 u2
B   s  u2 a3 u4 a5 u6   window shift      B   s  SUMMARY u4      compaction  B   s  u7          new content
"""

import re
from collections.abc import Iterator

from minicache.prompts.figures import common_prefix
from minicache.prompts.found import SYSTEM_ROLES, Found, with_messages, written
from minicache.prompts.prompt import Source
from minicache.prompts.site import Site
from minicache.prompts.spans import common_suffix
from minicache.prompts.values import Change, changes, said

SUMMARY = re.compile(r"\b(summary|summari[sz]ed|compact(ed|ion)?|earlier (turns|messages|conversation))\b", re.I)
TOLD = 5  # characters from which a message that is found inside another one counts as retold


class _Histories:
    """Both histories from their first difference on, each message as a number: equal ones say the same."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.a, self.b = site.said
        self.first = first = common_prefix(self.a, self.b)
        self.parted = first < min(len(self.a), len(self.b))
        # One edited message is not a moved history: all that follows it stands where it stood.
        self.in_place = first + 1 < len(self.a) and self.a[first + 1 :] == self.b[first + 1 : len(self.a)]
        self.only_system_before = all(m.get("role") in SYSTEM_ROLES for m in site.a.messages[:first])

    def goes_on(self, a_from: int, b_from: int) -> bool:
        """Whether all of A's messages from `a_from` on stand in B from `b_from` on; the first of them is looked at
        first, for two long histories have many pairs of places."""
        first, kept = self.a[a_from], len(self.a) - a_from
        return self.b[b_from : b_from + 1] == [first] and self.b[b_from : b_from + kept] == self.a[a_from:]

    def content(self, side: Source, index: int) -> str:
        return written(side.messages[index].get("content", ""))

    def found(self, b_from: int, detail: str) -> Found:
        """The repair: all of A's messages, then B's from `b_from` on."""
        site, index = self.site, self.first
        ours, theirs = site.a.messages[index], site.b.messages[index]
        spoken = changes(said(ours), said(theirs), ("messages", index))  # before marks and ids
        change = next(spoken, Change(("messages", index), ours, theirs))
        a, b = written(change.a), written(change.b)
        edit = with_messages(site, [*site.a.messages, *site.b.messages[b_from:]])
        return Found(edit, change.path, common_prefix(a, b), a, b, detail)


def window_shift(site: Site) -> Iterator[Found]:
    """The oldest messages are gone, and the rest moved up: B[d…] = A[d + k…]."""
    h = _Histories(site)
    if h.parted and h.only_system_before and not h.in_place:
        for shift in range(1, len(h.a) - h.first):
            if h.goes_on(h.first + shift, h.first):
                kept = len(h.a) - h.first - shift
                yield h.found(h.first + kept, f"shifted by {shift} messages, {kept} kept")
                return


def compaction(site: Site) -> Iterator[Found]:
    """Many messages became fewer, and what follows them is kept, or they became one that calls itself a summary."""
    h = _Histories(site)
    if not h.parted or h.in_place or h.b[h.first] in h.a[h.first :]:
        return
    places: dict[int, list[int]] = {}
    for place in range(h.first + 1, len(h.b)):
        places.setdefault(h.b[place], []).append(place)
    for a_from in range(h.first + 2, len(h.a)):
        for b_from in places.get(h.a[a_from], ()):
            if b_from < a_from and h.goes_on(a_from, b_from):
                yield h.found(b_from + len(h.a) - a_from, f"{a_from - h.first} messages became {b_from - h.first}")
                return
    if len(h.a) - h.first >= 2 and SUMMARY.search(h.content(site.b, h.first)):
        yield h.found(h.first + 1, f"{len(h.a) - h.first} messages became 1")


def side_request(site: Site) -> Iterator[Found]:
    """One message of B retells messages of A, in their order: a title or a tag asked for with a new prompt."""
    h = _Histories(site)
    if not h.parted or len(h.b) != h.first + 1:
        return
    text, place, retold = h.content(site.b, h.first), 0, 0
    for index in range(h.first, len(h.a)):
        content = h.content(site.a, index)
        at = text.find(content, place) if len(content) >= TOLD else -1
        if at >= 0:
            retold, place = retold + 1, at + len(content)
    if retold >= 2:
        yield h.found(h.first, f"it retells {retold} messages")


def history_rewrite(site: Site) -> Iterator[Found]:
    """Messages were taken out of the middle, or put into it; all that follows them is kept."""
    h = _Histories(site)
    if not h.parted or h.in_place:
        return
    for count in range(1, len(h.a) - h.first):
        if h.goes_on(h.first + count, h.first):
            yield h.found(len(h.a) - count, f"{count} messages taken out")
            return
    for count in range(1, len(h.b) - len(h.a) + 1):
        if h.goes_on(h.first, h.first + count):
            yield h.found(len(h.a) + count, f"{count} messages put in")
            return


def new_content(site: Site) -> Iterator[Found]:
    """B asks something else where A's last question, or its whole conversation, stood: there is nothing to repair."""
    h = _Histories(site)
    if not h.parted or site.b.messages[h.first].get("role") != "user":
        return
    a, b = h.content(site.a, h.first), h.content(site.b, h.first)
    start = common_prefix(a, b)
    edited = 2 * (start + common_suffix(a, b, start, start)) >= min(len(a), len(b))
    last = len(h.a) == h.first + 1
    another_question = last and len(h.b) == h.first + 1
    another_conversation = h.only_system_before and not last and not set(h.a[h.first :]) & set(h.b[h.first :])
    if not edited and (another_question or another_conversation):
        yield h.found(h.first, "")
