"""Differences between two requests that no prompt shows: they look like causes and cost nothing."""

from collections.abc import Iterator

from minicache.prompts.kinds import Kind
from minicache.prompts.reuse import common_prefix
from minicache.prompts.rules.rule import Found, written
from minicache.prompts.rules.table import FIELDS
from minicache.prompts.site import Edit, Site
from minicache.prompts.values import MISSING, Change, changes

STRUCTURAL = {Kind.key_order, Kind.set_order, Kind.reserialised, Kind.null, Kind.parts, Kind.ids, Kind.normaliser}
AT_MOST = 8  # differences that are listed


def not_rendered(site: Site) -> Iterator[tuple[Kind, Found]]:
    """The first differences between the two requests, each with its kind. Messages that B appends are no difference.

    `site` can be any site of the pair: only its two requests are compared.
    """
    for number, change in enumerate(_changes(site)):
        if number == AT_MOST:
            return
        yield _classified(site, change)


def only_appends(site: Site) -> bool:
    """Whether B's request is A's request, unchanged, with nothing but appended messages or text."""
    a, b = site.a, site.b
    kept = len(b.messages) >= len(a.messages) and b.payload.get("prompt", "").startswith(a.payload.get("prompt", ""))
    return kept and next(_changes(site), None) is None


def _classified(site: Site, change: Change) -> tuple[Kind, Found]:
    if "cache_control" in change.path:
        return Kind.cache_control, _plain(site, change)
    for rule in FIELDS:
        if rule.kind in STRUCTURAL:
            for found in rule.detect(site, change):
                return rule.kind, found
    return Kind.not_rendered, _plain(site, change)


def _plain(site: Site, change: Change) -> Found:
    a, b = written(change.a), written(change.b)
    return Found(Edit(site.b), change.path, common_prefix(a, b), a, b)


def _changes(site: Site) -> Iterator[Change]:
    a, b = site.a.payload, site.b.payload
    for index, (ours, theirs) in enumerate(zip(site.a.messages, site.b.messages, strict=False)):
        yield from changes(ours, theirs, ("messages", index))
    for name in ("tools", "documents", "template_kwargs"):
        yield from changes(a.get(name) or MISSING, b.get(name) or MISSING, (name,))
