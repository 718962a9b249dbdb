"""Two logged requests in, one diff out. This file adds to the diff of the prompts what else the log says: models, keys,
times, reported tokens."""

from dataclasses import dataclass, replace
from datetime import datetime

from minicache.core.errors import MinicacheError
from minicache.prompts.diff import Cause, Diff, compare
from minicache.prompts.earlier import Earlier
from minicache.prompts.errors import CannotCompare
from minicache.prompts.kinds import Kind, Layer
from minicache.prompts.prompt import Means, Prompt, Source
from minicache.prompts.reported import unread
from minicache.prompts.request_log import LoggedRequest
from minicache.prompts.reuse import common_prefix
from minicache.prompts.rules.not_rendered import not_rendered, only_appends
from minicache.prompts.site import Later, Site
from minicache.prompts.values import MISSING, text_of_path, value_at
from minicache.text.byte_tokenizer import PlainByteTokenizer
from minicache.text.origin import Path

HARMLESS = "Nothing to repair: no prompt shows it. A hosted API may still use it in its cache key."


@dataclass(frozen=True, slots=True)
class Examined:
    """A diff and the two prompts that it compares."""

    diff: Diff
    earlier: Earlier
    later: Later


def examine(
    a: LoggedRequest, b: LoggedRequest, means: Means, *, generated: str | None = None, block_size: int = 16
) -> Examined:
    """Compare two requests; `a` is the earlier one. `generated` is its raw completion (`None`: the completion in the
    log).

    Raises `CannotCompare` if the two can never share KV, if one of them cannot be rendered, or if its logged tokens are
    not those of this tokenizer and template.
    """
    if a.body.model is not None and b.body.model is not None and a.body.model != b.body.model:
        raise CannotCompare(
            f"{a.where} is for the model {a.body.model!r} and {b.where} for {b.body.model!r}: two models share "
            "no KV; compare two requests for the same model",
            repr(a.body.model),
            repr(b.body.model),
        )
    if ("prompt" in a.body.payload) != ("prompt" in b.body.payload):
        raise CannotCompare(
            f"{a.where} is a body of {a.body.api} and {b.where} of {b.body.api}: a chat and a completion have no "
            "fields in common; compare two requests of the same kind"
        )
    times = [request.time for request in (a, b)]
    if None in times:  # then both are rendered at the same time
        times = [times[0] or times[1] or datetime.now()] * 2
    first, second = (_prompt(request, time, means) for request, time in zip((a, b), times, strict=True))
    # The server puts the same tokens before both prompts.
    if second.logged is None and first.lead:
        second = Prompt(second.source, means, lead=first.lead)
    elif first.logged is None and second.lead:
        first = Prompt(first.source, means, lead=second.lead)
    earlier = _earlier(a, first, generated)
    later = Later(earlier, second)
    diff = compare(earlier, second, block_size)
    causes = list(diff.causes)
    other = list(unread(a, b, diff.reuse))
    if not causes and not other:
        causes = _harmless(later, diff)
    outside = [cause for cause in other if cause.kind in (Kind.namespace, Kind.skips_reading)]
    return Examined(
        replace(
            diff,
            reuse=outside[0].before if outside else diff.reuse,
            causes=(*other, *(_mapped(cause, a, b) for cause in causes)),
            notes=(*diff.notes, *_notes(a, b, earlier, means)),
            only_appends=only_appends(Site(later, 0, 0, 0, in_tokens=False)),
        ),
        earlier,
        later,
    )


def _prompt(request: LoggedRequest, time: datetime | None, means: Means) -> Prompt:
    """The request's rendered prompt, with its logged tokens. Raises `CannotCompare` if these decode to another text."""
    source = Source(request.body.payload, time, request.time is not None)
    logged = request.body.prompt_ids or request.response.prompt_ids
    try:
        if request.body.prompt_ids is not None:
            text = means.tokenizer.decode(request.body.prompt_ids, keep_control=True)
            source = replace(source, payload={"prompt": text})
        prompt = Prompt(source, means)
        if logged is None:
            _ = prompt.text
            return prompt
        encoded = prompt.encoded
        for lead in (0, 1):  # a server may put a token before every prompt
            rest = logged[lead:]
            if rest == encoded or means.tokenizer.decode(rest, keep_control=True) == prompt.text:
                return Prompt(source, means, logged=logged, lead=logged[:lead])
    except MinicacheError as error:
        sent = _place_in_body(request, getattr(error, "path", None))
        raise CannotCompare(f"{request.where}: {error}{sent}", *getattr(error, "quotes", ())) from None
    agree = common_prefix(logged, encoded)
    raise CannotCompare(
        f"{request.where}: its logged tokens are not those of this template and tokenizer (the first {agree} agree): "
        "name the right ones with --template and --tokenizer"
    )


def _place_in_body(request: LoggedRequest, path: Path | None) -> str:
    """The end of a message: where the body that was sent has the field on which a template failed, if elsewhere."""
    sent = None if path is None else request.body.sources.find(path, None)[0]
    return "" if sent in (None, path) else f"; in the body that was sent this is {text_of_path(sent)}"


def _earlier(a: LoggedRequest, prompt: Prompt, generated: str | None) -> Earlier:
    ids = a.response.output_ids
    if generated is not None:
        return Earlier(prompt, generated, ids if ids is not None and _decoded(a, prompt) == generated else None)
    if ids is not None:
        return Earlier(prompt, _decoded(a, prompt), ids)
    return Earlier(prompt, a.response.output_text or "")


def _decoded(a: LoggedRequest, prompt: Prompt) -> str:
    try:
        return prompt.means.tokenizer.decode(a.response.output_ids or [], keep_control=True)
    except MinicacheError as error:
        raise CannotCompare(f"{a.where}: {error}", *getattr(error, "quotes", ())) from None


def _mapped(cause: Cause, a: LoggedRequest, b: LoggedRequest) -> Cause:
    """The cause with its path in the body that was sent: B's, or A's if B has no such value."""
    if cause.path is None:
        return cause
    body = a.body if value_at(b.body.payload, cause.path) is MISSING else b.body
    path, offset = body.sources.find(cause.path, cause.offset)
    return replace(cause, path=path, offset=offset)


def _harmless(later: Later, diff: Diff) -> list[Cause]:
    site = Site(later, 0, 0, 0, in_tokens=False)
    causes = [
        Cause(
            Layer.none, kind, found.path, found.offset, found.a, found.b, diff.reuse, diff.reuse, HARMLESS, found.detail
        )
        for kind, found in not_rendered(site)
    ]
    if not causes and diff.reuse.lcp == diff.a_tokens == diff.b_tokens:
        fix = "Nothing to repair: the prompts are equal. If tokens were not reused, look at routing and eviction."
        return [Cause(Layer.none, Kind.identical, None, None, "", "", diff.reuse, diff.reuse, fix)]
    return causes


def _notes(a: LoggedRequest, b: LoggedRequest, earlier: Earlier, means: Means) -> list[str]:
    notes = []
    if means.renderer is not None and "strftime_now" in means.renderer.template.source and None in (a.time, b.time):
        notes.append(
            "The template writes the date, and the log has no times of the requests. Both were rendered at the same "
            "time, so a change of date cannot show."
        )
    plain = isinstance(means.tokenizer, PlainByteTokenizer)
    if earlier.generated and earlier.logged is None and not plain:
        notes.append(
            "The log has no ids of the generated tokens. The model may have generated other tokens than the tokenizer "
            "chooses for the same text, so the reuse of the answer is an upper bound."
        )
    reported = b.response.cached_tokens
    if reported is not None:
        notes.append(f"The engine reported {reported:,} cached tokens for B.")
    return notes
