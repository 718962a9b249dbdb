"""B's history holds A's answer in another form than the model generated. Generated text has no fields, only
characters."""

import json
import re
from collections.abc import Iterator
from typing import Any

from minicache.prompts.kinds import Kind, Layer
from minicache.prompts.rules.fields import parsed
from minicache.prompts.rules.rule import KEEP, Found, SiteRule, written
from minicache.prompts.site import Edit, Site, Splice
from minicache.prompts.spans import ANCHOR
from minicache.prompts.values import MISSING, value_at
from minicache.text.origin import Field, Key, Path, Run, Value

THINK = ("<think>", "</think>")
THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*</\1>", re.S)
SPACE = re.compile(r"\s*")


def answer_path(site: Site) -> Path:
    """The path of the message of B that should hold A's answer."""
    return "messages", len(site.a.messages)


def answer_of(site: Site) -> dict[str, Any] | None:
    """That message, if its role is assistant; else `None`."""
    message = value_at(site.b.payload, answer_path(site))
    return message if message is not MISSING and message.get("role") == "assistant" else None


def answer_reserialised(site: Site) -> Iterator[Found]:
    """The client sent the arguments of a call back as a different text of the same JSON."""
    for found, sent in _reserialised(site):
        if isinstance(sent, str):
            yield found


def answer_rewritten(site: Site) -> Iterator[Found]:
    """The client sent the arguments of a call back as an object, and the template writes its JSON differently from the
    model."""
    for found, sent in _reserialised(site):
        if not isinstance(sent, str):
            yield found


def _reserialised(site: Site) -> Iterator[tuple[Found, Any]]:
    path = site.b_path
    if not site.in_answer or path is None or "arguments" not in path or path[:2] != answer_path(site):
        return
    path = path[: path.index("arguments") + 1]
    sent = value_at(site.b.payload, path)
    runs = site.later.prompt.rendered.runs
    index = runs.index_at(site.b_at)
    while index > 0 and _is_under(runs[index - 1], path):
        index -= 1
    offset = site.b_at - runs[index].start
    try:
        value, end = json.JSONDecoder().raw_decode(site.a_text, site.a_at - offset)
    except (ValueError, RecursionError):
        return
    if value == parsed(sent):
        generated = site.a_text[site.a_at - offset : end]
        yield Found(Edit(site.b.with_value(path, generated)), path, offset, generated, written(sent)), sent


def _is_under(run: Run, path: Path) -> bool:
    return isinstance(run.origin, Field | Key | Value) and run.origin.path[: len(path)] == path


def answer_trim(site: Site) -> Iterator[Found]:
    """The client sent the answer back without the white space at its beginning or end."""
    for found, kept in _trimmed(site):
        if not kept:
            yield found


def answer_trim_by_template(site: Site) -> Iterator[Found]:
    """The message still has the white space, and the template removed it."""
    for found, kept in _trimmed(site):
        if kept:
            yield found


def _trimmed(site: Site) -> Iterator[tuple[Found, bool]]:
    """The finding, and whether B's message still has the white space."""
    message = answer_of(site)
    content = message.get("content") if message is not None else None
    if not site.in_answer or not isinstance(content, str):
        return
    a_space, b_space = (_space_at(text, at) for text, at in ((site.a_text, site.a_at), (site.b_text, site.b_at)))
    a_end, b_end = site.a_at + len(a_space), site.b_at + len(b_space)
    follows = site.a_text[a_end : a_end + ANCHOR]
    if a_space == b_space or not site.b_text.startswith(follows, b_end):
        return
    origin = site.b_origin
    leading = isinstance(origin, Field) and origin.path == (*answer_path(site), "content")
    at = origin.offset if leading and isinstance(origin, Field) else len(content.rstrip())
    kept = bool(a_space) and (content[:at].endswith(a_space) if leading else content[at:] == a_space)
    repaired = content[:at] + a_space + content[at + len(b_space) :]
    path: Path = (*answer_path(site), "content")
    repair = Splice(a_end, b_end) if kept else Edit(site.b.with_value(path, repaired))
    yield Found(repair, path, at - len(a_space) if kept and leading else at, a_space, b_space), kept


def _space_at(text: str, at: int) -> str:
    match = SPACE.match(text, at)
    return match[0] if match else ""


def answer_without_reasoning(site: Site) -> Iterator[Found]:
    """The client left the reasoning out, and the template would have written it."""
    message = answer_of(site)
    if not site.in_answer or message is None or message.get("reasoning_content"):
        return
    before, found, rest = site.earlier.generated.partition(THINK[0])
    thought, closed, _ = rest.partition(THINK[1])
    if found and closed and not before.strip():
        path: Path = (*answer_path(site), "reasoning_content")
        yield Found(Edit(site.b.with_value(path, thought.strip("\n"))), path, 0, thought.strip("\n"), "")


def answer_thought_dropped(site: Site) -> Iterator[Found]:
    """The template left the reasoning out of B's text, and wrote the rest of the answer."""
    span = site.span
    gone = site.a_text[span.a_start : span.a_end].strip()
    if site.in_answer and answer_of(site) and span.b_start == span.b_end and THOUGHT.fullmatch(gone):
        text = site.a_text[span.a_start : span.a_end]
        yield Found(
            Splice(span.a_end, span.b_end),
            None,
            None,
            text,
            "",
            f"messages[{len(site.a.messages)}]: A has the model's reasoning here, and B does not",
        )


def answer_changed(site: Site) -> Iterator[Found]:
    """The message is different from the generated answer: a user edited it, or it was generated again."""
    origin = site.b_origin
    if site.a_at < site.earlier.answer_start or not isinstance(origin, Field):
        return
    if origin.path[:2] == answer_path(site):
        span = site.span
        texts = site.a_text[site.a_at : span.a_end], site.b_text[site.b_at : span.b_end]
        yield Found(Splice(span.a_end, span.b_end), origin.path, origin.offset, *texts)


RULES: tuple[SiteRule, ...] = (
    SiteRule(Kind.reserialised, Layer.payload, answer_reserialised, KEEP),
    SiteRule(
        Kind.reserialised, Layer.renderer, answer_rewritten,
        "Give the template the arguments as the text that the model wrote, or make both write JSON in the same way.",
    ),
    SiteRule(Kind.trim, Layer.payload, answer_trim, KEEP),
    SiteRule(
        Kind.trim, Layer.template, answer_trim_by_template,
        "Use a template that does not trim answers, or stop generation before the white space.",
    ),
    SiteRule(
        Kind.history_rewrite, Layer.payload, answer_without_reasoning,
        "Send the reasoning back with the answer: this template writes it into the prompt.",
    ),
)  # fmt: skip
