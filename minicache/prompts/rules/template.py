"""The requests are equal here, and the template writes them differently: because of an argument, the time, or what
follows.
"""

from collections.abc import Iterator
from dataclasses import replace

from minicache.prompts.kinds import Kind, Layer
from minicache.prompts.rules.answers import THOUGHT, answer_changed, answer_thought_dropped
from minicache.prompts.rules.rule import KEEP, SYSTEM_ROLES, VARIANT, Found, SiteRule, written
from minicache.prompts.site import Edit, Site, Splice
from minicache.prompts.values import MISSING
from minicache.text.origin import Clock, Field, Path


def template_arguments(site: Site) -> Iterator[Found]:
    """An argument of the template changed. Repair: A's value of one argument; after these, A's values of all."""
    a, b = site.a.payload.get("template_kwargs", {}), site.b.payload.get("template_kwargs", {})
    changed = [
        name for name in (*a, *(key for key in b if key not in a)) if a.get(name, MISSING) != b.get(name, MISSING)
    ]
    for name in changed[: site.patience]:
        path: Path = ("template_kwargs", name)
        ours = a.get(name, MISSING)
        yield Found(Edit(site.b.with_value(path, ours)), path, 0, written(ours), written(b.get(name, MISSING)))
    if len(changed) > 1:
        edit = Edit(site.b.with_value(("template_kwargs",), a))
        yield Found(edit, ("template_kwargs",), 0, written(a), written(b))


def template_clock(site: Site) -> Iterator[Found]:
    """The template writes the time. Repair: B rendered at A's time."""
    if site.a.time != site.b.time and (isinstance(site.a_origin, Clock) or isinstance(site.b_origin, Clock)):
        texts = _printed(site, "a"), _printed(site, "b")
        yield Found(Edit(replace(site.b, time=site.a.time)), None, None, *texts, _line(site))


def _printed(site: Site, side: str) -> str:
    """The whole time that the template wrote around the divergence; empty if it wrote none there."""
    rendered = (site.earlier.prompt if side == "a" else site.later.prompt).rendered
    at = site.a_at if side == "a" else site.b_at
    run = rendered.runs[rendered.runs.index_at(at)]
    return rendered.text[run.start : run.end] if isinstance(run.origin, Clock) else ""


def _line(site: Site) -> str:
    origin = site.a_origin if isinstance(site.a_origin, Clock) else site.b_origin
    return f"line {origin.line} of the template" if isinstance(origin, Clock) else ""


def hoist_by_template(site: Site) -> Iterator[Found]:
    """The template writes a system message that B appended before the messages that A has too."""
    if not isinstance(site.b_origin, Field) or site.a_at >= site.earlier.generation_start:
        return
    match site.b_origin.path:
        case ("messages", int(index), *_) if index >= len(site.a.messages):
            if site.b.messages[index].get("role") in SYSTEM_ROLES:
                yield _spliced(site)


def trim_by_template(site: Site) -> Iterator[Found]:
    """The template removes white space that is part of a text of the request."""
    span = site.span
    texts = site.a_text[span.a_start : span.a_end], site.b_text[span.b_start : span.b_end]
    origin = site.a_origin if texts[0] else site.b_origin
    if isinstance(origin, Field) and not any(text.strip() for text in texts):
        yield _spliced(site)


def template_asymmetry(site: Site) -> Iterator[Found]:
    """B continues where A ended, and the template writes A's messages differently: it keeps reasoning only in the
    latest turn, or writes the tools next to the last message, or fills a default in only once."""
    yield _spliced(site)


def _spliced(site: Site) -> Found:
    """A finding whose repair puts A's text in place of B's, up to the next text of the request that both have."""
    span = site.span
    back = _turned_back(site.a_text, span.a_start, span.a_end) if span.b_start == span.b_end else 0
    back = back or (_turned_back(site.b_text, span.b_start, span.b_end) if span.a_start == span.a_end else 0)
    a = site.a_text[span.a_start - back : span.a_end - back]
    b = site.b_text[span.b_start - back : span.b_end - back]
    return Found(Splice(span.a_end, span.b_end), None, None, a, b, _where(site, a, b))


def _turned_back(text: str, start: int, end: int) -> int:
    """By how many characters an inserted piece can move back to begin with a tag: `hink>…<t` moved back by 2 is
    `<think>…`."""
    for back in range(min(end - start, start, 16) + 1):
        if text[start - back : start] != text[end - back : end]:
            break
        if text[start - back] in "<[" and back:
            return back
    return 0


def _where(site: Site, a: str, b: str) -> str:
    """The message that the text belongs to, the line of the template that wrote it, and what the text is, if clear."""
    places = [f"{path[0]}[{path[1]}]" for path in site.paths[-1:] if len(path) > 1]
    line = getattr(site.a_origin if a else site.b_origin, "line", None)
    if line is not None:
        places.append(f"line {line} of the template")
    here, there = ("A", "B") if a else ("B", "A")
    path = site.a_path if a else site.b_path
    what = ""
    if THOUGHT.match((a or b).strip()):
        what = f"{here} has the model's reasoning here, and {there} does not"
    elif path is not None and path[0] == "tools":
        what = f"{here} has the tools here, and {there} does not"
    return ": ".join(filter(None, (", ".join(places), what)))


RULES: tuple[SiteRule, ...] = (
    SiteRule(
        Kind.template_clock, Layer.template, template_clock,
        "Write the day into the system prompt instead, and use a template that writes no date.",
    ),
    SiteRule(
        Kind.template_arguments, Layer.template_kwargs, template_arguments,
        "Keep the arguments of the template (thinking, effort) unchanged during a session.",
    ),
    SiteRule(
        Kind.hoist, Layer.template, hoist_by_template,
        "Send later instructions as a reminder in a user turn: this template moves system messages to the front.",
    ),
    SiteRule(Kind.template_asymmetry, Layer.template, answer_thought_dropped, VARIANT),
    SiteRule(Kind.branch, Layer.payload, answer_changed, KEEP),
    SiteRule(
        Kind.trim, Layer.template, trim_by_template,
        "Send texts without white space at their ends, or use a template that does not trim.",
    ),
    SiteRule(Kind.template_asymmetry, Layer.template, template_asymmetry, VARIANT),
)  # fmt: skip
