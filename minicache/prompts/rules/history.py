"""The list of messages, or of tools, as a whole: cut, summarised, reordered. Messages are compared by `values.said`.

A   s  u0 a1 u2 a3 u4                     A   s  u0 a1 u2 a3 u4              A   s  u0 a1 u2
B   s  u2 a3 u4 a5 u6   window shift      B   s  SUMMARY u4      compaction  B   s  u7          new content
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from minicache.prompts.kinds import Kind, Layer
from minicache.prompts.prompt import Source
from minicache.prompts.reuse import common_prefix
from minicache.prompts.rules.rule import CUT_RARELY, SYSTEM_ROLES, Found, SiteRule, counted, without, written
from minicache.prompts.site import Edit, Site
from minicache.prompts.spans import common_suffix, common_with_start
from minicache.prompts.values import MISSING, Change, changes, list_of_keys, said
from minicache.text.origin import Path

SUMMARY = re.compile(r"\b(summary|summari[sz]ed|compact(ed|ion)?|earlier (turns|messages|conversation))\b", re.I)
LISTED = 256  # tools whose places are listed
SEARCHED = 2**32  # characters that are searched in vain for messages that one message repeats
RETOLD = 5  # a message of at least this many characters inside another message counts as retold


class _Histories:
    """Both lists of messages and their first difference. Each message is a number; equal numbers are equal messages."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.a, self.b = site.said
        self.first = first = common_prefix(self.a, self.b)
        self.parted = first < min(len(self.a), len(self.b))
        # One edited message does not move the history: all messages after it are in their old places.
        self.in_place = first + 1 < len(self.a) and self.a[first + 1 :] == self.b[first + 1 : len(self.a)]
        self.only_system_before = all(m.get("role") in SYSTEM_ROLES for m in site.a.messages[:first])

    def goes_on(self, a_from: int, b_from: int) -> bool:
        """Whether B's messages from `b_from` on begin with all of A's messages from `a_from` on."""
        kept = len(self.a) - a_from
        return b_from + kept <= len(self.b) and self.kept_before[b_from + kept] >= kept

    @cached_property
    def kept_before(self) -> list[int]:
        """For each place in B, how many of A's last messages stand right before it. Found in one pass over both lists,
        because two long histories have many pairs of places."""
        lengths = common_with_start([*reversed(self.a), None, *reversed(self.b)])[len(self.a) + 1 :]
        return [0, *reversed(lengths)]

    def content(self, side: Source, index: int) -> str:
        return written(side.messages[index].get("content", ""))

    def found(self, b_from: int, detail: str) -> Found:
        """A finding whose repair is all of A's messages, then B's from `b_from` on."""
        site, index = self.site, self.first
        ours, theirs = site.a.messages[index], site.b.messages[index]
        spoken = changes(said(ours), said(theirs), ("messages", index))  # rather than cache marks and ids
        change = next(spoken, Change(("messages", index), ours, theirs))
        a, b = written(change.a), written(change.b)
        edit = Edit(site.b.with_value(("messages",), [*site.a.messages, *site.b.messages[b_from:]]))
        return Found(edit, change.path, common_prefix(a, b), a, b, detail)


def window_shift(site: Site) -> Iterator[Found]:
    """The oldest messages are missing in B, and the others moved up: B[d…] = A[d + k…]."""
    h = _Histories(site)
    if h.parted and h.only_system_before and not h.in_place:
        for shift in range(1, len(h.a) - h.first):
            if h.goes_on(h.first + shift, h.first):
                kept = len(h.a) - h.first - shift
                yield h.found(h.first + kept, f"shifted by {counted(shift, 'message')}, {kept} kept")
                return


def compaction(site: Site) -> Iterator[Found]:
    """Several messages became fewer, and the messages after them are unchanged; or they became one message that calls
    itself a summary."""
    h = _Histories(site)
    if not h.parted or h.in_place or h.b[h.first] in h.a[h.first :]:
        return
    # As many of A's last messages as possible, in B after its first different message, moved towards the beginning.
    most = len(h.a) - h.first - 2
    ends = range(h.first + 2, min(len(h.a), len(h.b) + 1))
    kept = {end: min(h.kept_before[end], end - h.first - 1, most) for end in ends}
    end = max(kept, key=kept.__getitem__, default=0)
    if kept.get(end, 0) > 0:
        a_from, b_from = len(h.a) - kept[end], end - kept[end]
        yield h.found(end, f"{a_from - h.first} messages became {b_from - h.first}")
        return
    if len(h.a) - h.first >= 2 and SUMMARY.search(h.content(site.b, h.first)):
        yield h.found(h.first + 1, f"{len(h.a) - h.first} messages became 1")


def side_request(site: Site) -> Iterator[Found]:
    """One message of B repeats several messages of A in their order: a new prompt that asks for a title or a tag."""
    h = _Histories(site)
    if not h.parted or len(h.b) != h.first + 1:
        return
    text, place, retold, left = h.content(site.b, h.first), 0, 0, SEARCHED
    for index in range(h.first, len(h.a)):
        content = h.content(site.a, index)
        if len(content) < RETOLD or left < 0:
            continue
        at = text.find(content, place)
        if at >= 0:
            retold, place = retold + 1, at + len(content)
        else:
            left -= len(text) - place
    if retold >= 2:
        yield h.found(h.first, f"it repeats {retold} messages of A")


def history_rewrite(site: Site) -> Iterator[Found]:
    """Messages were removed from the middle or inserted there; all messages after them are unchanged."""
    h = _Histories(site)
    if not h.parted or h.in_place:
        return
    for count in range(1, len(h.a) - h.first):
        if h.goes_on(h.first + count, h.first):
            yield h.found(len(h.a) - count, f"{counted(count, 'message')} removed")
            return
    for count in range(1, len(h.b) - len(h.a) + 1):
        if h.goes_on(h.first, h.first + count):
            yield h.found(len(h.a) + count, f"{counted(count, 'message')} inserted")
            return


def new_content(site: Site) -> Iterator[Found]:
    """B asks a different question in the place of A's last one, or holds a different conversation: nothing to
    repair."""
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


def _tools(site: Site) -> tuple[list[Any], list[Any]] | None:
    """Both lists of tools, if the divergence is in the tools and the lists are not written in the same way."""
    a, b = site.a.payload.get("tools") or [], site.b.payload.get("tools") or []
    if a == b and list_of_keys(a) == list_of_keys(b):
        return None
    return (a, b) if any(path[0] == "tools" for path in site.paths) or not (a and b) else None


def _name_of(tool: Any) -> str:
    """A tool's name, in any API's form; its JSON if it has no name."""
    function = tool.get("function", tool) if isinstance(tool, Mapping) else tool
    name = function.get("name") if isinstance(function, Mapping) else None
    return name if isinstance(name, str) else json.dumps(tool, sort_keys=True)


def tool_order(site: Site) -> Iterator[Found]:
    """The same tools, by name, in a different order. Repair: A's order, each tool as B writes it."""
    lists = _tools(site)
    if lists is None:
        return
    a, b = ([_name_of(tool) for tool in tools] for tools in lists)
    if a != b and sorted(a) == sorted(b) and len(set(b)) == len(b):
        by_name = dict(zip(b, lists[1], strict=True))
        index = next(i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
        edit = Edit(site.b.with_value(("tools",), [by_name[name] for name in a]))
        places = {name: place for place, name in enumerate(a)}
        permutation = ", ".join(str(places[name]) for name in b[:LISTED]) + (", …" if len(b) > LISTED else "")
        path: Path = ("tools", index, "function", "name") if "function" in lists[0][index] else ("tools", index, "name")
        offset = common_prefix(a[index], b[index])
        yield Found(edit, path, offset, a[index], b[index], f"B sends A's tools in the order [{permutation}]")


def tool_set_changed(site: Site) -> Iterator[Found]:
    """Tools were added or removed. Repair: A's tools."""
    lists = _tools(site)
    if lists is None:
        return
    a, b = ([_name_of(tool) for tool in tools] for tools in lists)
    added, removed = without(b, a), without(a, b)
    if added or removed:
        index = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
        detail = f"{len(added)} added, {len(removed)} removed"
        edit = Edit(site.b.with_value(("tools",), site.a.payload.get("tools")))
        ours = lists[0][index] if index < len(a) else MISSING
        theirs = lists[1][index] if index < len(b) else MISSING
        yield Found(edit, ("tools", index), 0, written(ours), written(theirs), detail)


RULES: tuple[SiteRule, ...] = (
    SiteRule(
        Kind.tool_order, Layer.payload, tool_order,
        "Sort the tools by name where the list is built.",
    ),
    SiteRule(
        Kind.tool_set_changed, Layer.payload, tool_set_changed,
        "Send the same tools in every turn and refuse the calls that are not allowed: the template writes the tools "
        "before all messages.",
    ),
    SiteRule(Kind.window_shift, Layer.payload, window_shift, CUT_RARELY),
    SiteRule(
        Kind.side_request, Layer.payload, side_request,
        "Append the question to the conversation as one more user message, instead of repeating the conversation in a "
        "new prompt.",
    ),
    SiteRule(
        Kind.compaction, Layer.payload, compaction,
        "Nothing to repair if it is rare: a summary then saves more than it costs. If it is frequent, summarise less "
        "often.",
    ),
    SiteRule(Kind.history_rewrite, Layer.payload, history_rewrite, CUT_RARELY),
    SiteRule(
        Kind.new_content, Layer.none, new_content,
        "Nothing to repair: the two requests ask different things.",
    ),
)  # fmt: skip
