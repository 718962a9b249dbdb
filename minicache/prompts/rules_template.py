"""The requests say the same here, and the template writes it differently: its arguments, its clock, its own choice."""

import re
from collections.abc import Iterator
from dataclasses import replace

from minicache.prompts.found import SYSTEM_ROLES, Found, written
from minicache.prompts.site import Edit, Site, Splice
from minicache.prompts.values import MISSING
from minicache.text.origin import Clock, Field, Path

THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*</\1>", re.S)


def template_arguments(site: Site) -> Iterator[Found]:
    """An argument of the template changed. Repair: A's arguments, one that does it alone before all of them."""
    a, b = site.a.payload.get("template_kwargs", {}), site.b.payload.get("template_kwargs", {})
    changed = [
        name for name in (*a, *(key for key in b if key not in a)) if a.get(name, MISSING) != b.get(name, MISSING)
    ]
    for name in changed:
        path: Path = ("template_kwargs", name)
        ours = a.get(name, MISSING)
        yield Found(Edit(site.b.with_value(path, ours)), path, 0, written(ours), written(b.get(name, MISSING)))
    if len(changed) > 1:
        edit = Edit(site.b.with_value(("template_kwargs",), a))
        yield Found(edit, ("template_kwargs",), 0, written(a), written(b))


def template_clock(site: Site) -> Iterator[Found]:
    """The template prints the time. Repair: B rendered at A's time."""
    if site.a.time != site.b.time and (isinstance(site.a_origin, Clock) or isinstance(site.b_origin, Clock)):
        texts = _printed(site, "a"), _printed(site, "b")
        yield Found(Edit(replace(site.b, time=site.a.time)), None, None, *texts, _line(site))


def _printed(site: Site, side: str) -> str:
    """All that the clock wrote around the divergence."""
    rendered = (site.earlier.prompt if side == "a" else site.later.prompt).rendered
    at = site.a_at if side == "a" else site.b_at
    run = rendered.runs[rendered.runs.index_at(at)]
    return rendered.text[run.start : run.end] if isinstance(run.origin, Clock) else ""


def _line(site: Site) -> str:
    origin = site.a_origin if isinstance(site.a_origin, Clock) else site.b_origin
    return f"line {origin.line} of the template" if isinstance(origin, Clock) else ""


def hoist_by_template(site: Site) -> Iterator[Found]:
    """The template writes a system message that B has added later before what A has already said."""
    if not isinstance(site.b_origin, Field) or site.a_at >= site.earlier.generation_start:
        return
    match site.b_origin.path:
        case ("messages", int(index), *_) if index >= len(site.a.messages):
            if site.b.messages[index].get("role") in SYSTEM_ROLES:
                yield _spliced(site)


def trim_by_template(site: Site) -> Iterator[Found]:
    """The template takes space away that is part of a text of the request."""
    span = site.span
    texts = site.a_text[span.a_start : span.a_end], site.b_text[span.b_start : span.b_end]
    origin = site.a_origin if texts[0] else site.b_origin
    if isinstance(origin, Field) and not any(text.strip() for text in texts):
        yield _spliced(site)


def template_asymmetry(site: Site) -> Iterator[Found]:
    """B goes on where A ended, and the template writes what A said differently: blocks of thought that are kept only
    for the latest turn, tools beside the last message, a default that is filled in once."""
    yield _spliced(site)


def _spliced(site: Site) -> Found:
    """A's text up to where both have the same text of the request again."""
    span = site.span
    back = _turned_back(site.a_text, span.a_start, span.a_end) if span.b_start == span.b_end else 0
    back = back or (_turned_back(site.b_text, span.b_start, span.b_end) if span.a_start == span.a_end else 0)
    a = site.a_text[span.a_start - back : span.a_end - back]
    b = site.b_text[span.b_start - back : span.b_end - back]
    return Found(Splice(span.a_end, span.b_end), None, None, a, b, _where(site, a, b))


def _turned_back(text: str, start: int, end: int) -> int:
    """How far an inserted piece can be moved back to begin with a tag: `hink>…<t` is `<think>…` two earlier."""
    for back in range(min(end - start, start, 16) + 1):
        if text[start - back : start] != text[end - back : end]:
            break
        if text[start - back] in "<[" and back:
            return back
    return 0


def _where(site: Site, a: str, b: str) -> str:
    """The message that the text belongs to, the line of the template that wrote it, and what it plainly is."""
    places = [f"{path[0]}[{path[1]}]" for path in site.paths[-1:] if len(path) > 1]
    line = getattr(site.a_origin if a else site.b_origin, "line", None)
    if line is not None:
        places.append(f"line {line} of the template")
    here, there = ("A", "B") if a else ("B", "A")
    path = site.a_path if a else site.b_path
    what = ""
    if THOUGHT.match((a or b).strip()):
        what = f"what was thought stands here in {here} and not in {there}"
    elif path is not None and path[0] == "tools":
        what = f"the tools stand here in {here} and not in {there}"
    return ": ".join(filter(None, (", ".join(places), what)))
