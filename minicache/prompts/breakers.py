"""The table of what breaks a prefix: for each kind its layer, its detector and its fix.

The first row that matches, and whose repair moves the divergence, is the cause. So the order is the order of verdicts:

    TOKENS      equal text, other tokens
    HISTORY     the list of messages, or of tools, as a whole
    FIELDS      one value of the request that differs: what it is as a structure, then what its words look like
    ANSWERS     what A generated, and how it came back
    TEMPLATE    nothing in the requests differs here
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from minicache.prompts import (
    rules_answer,
    rules_field,
    rules_history,
    rules_template,
    rules_text,
    rules_tokens,
    rules_tools,
)
from minicache.prompts.found import Found
from minicache.prompts.kinds import Kind, Layer
from minicache.prompts.site import Site
from minicache.prompts.values import Change

OfSite = Callable[[Site], Iterable[Found]]
OfChange = Callable[[Site, Change], Iterable[Found]]


@dataclass(frozen=True, slots=True)
class SiteRule:
    """A detector that looks at the whole divergence, and the advice to give."""

    kind: Kind
    layer: Layer
    detect: OfSite
    fix: str


@dataclass(frozen=True, slots=True)
class FieldRule:
    """A detector that looks at one value that differs."""

    kind: Kind
    layer: Layer
    detect: OfChange
    fix: str


Rule = SiteRule | FieldRule

FREEZE = "Strip it at the gateway, or freeze it for the session; what must change goes into the newest user turn."
LAST = "Say it in the newest user turn, or as an appended message, and leave what was sent before as it is."
KEEP = "Keep the bytes that the model wrote, and send them back."
BIG_CUTS = "Cut in large steps and rarely, and keep what was sent before byte for byte: each cut costs one prefill."
VARIANT = "Use a variant of the template that writes earlier turns as they were first written, or accept the loss."

TOKENS = (
    SiteRule(
        Kind.double_bos, Layer.tokenizer, rules_tokens.double_bos,
        "The template prints the first token already: tokenize with add_special_tokens=false, at every endpoint.",
    ),
    SiteRule(
        Kind.retokenised, Layer.tokenizer, rules_tokens.retokenised,
        "Send the generated token ids back (token in, token out); text alone cannot tell which tokens the model chose.",
    ),
    SiteRule(
        Kind.seam, Layer.tokenizer, rules_tokens.seam,
        "End the shared part with a special token or at a word: the last token joined what follows it.",
    ),
    SiteRule(
        Kind.retokenised, Layer.tokenizer, rules_tokens.other_tokens,
        "Use one version of one tokenizer at every endpoint.",
    ),
)  # fmt: skip
HISTORY = (
    SiteRule(
        Kind.tool_order, Layer.payload, rules_tools.tool_order,
        "Sort the tools by name where the list is made; an order that varies need not.",
    ),
    SiteRule(
        Kind.tool_set_changed, Layer.payload, rules_tools.tool_set_changed,
        "Send the same tools in every turn and refuse calls that are not allowed: tools come before all messages.",
    ),
    SiteRule(Kind.window_shift, Layer.payload, rules_history.window_shift, BIG_CUTS),
    SiteRule(
        Kind.side_request, Layer.payload, rules_history.side_request,
        "Append the question to the conversation as one more user message, in place of a new prompt that retells it.",
    ),
    SiteRule(
        Kind.compaction, Layer.payload, rules_history.compaction,
        "Nothing to repair once: a summary pays for itself if it is rare. Look at it if it is frequent.",
    ),
    SiteRule(Kind.history_rewrite, Layer.payload, rules_history.history_rewrite, BIG_CUTS),
    SiteRule(
        Kind.new_content, Layer.none, rules_history.new_content,
        "Nothing to repair: the two ask different things.",
    ),
)  # fmt: skip
FIELDS = (
    FieldRule(
        Kind.key_order, Layer.payload, rules_tools.key_order,
        "Write objects with sorted keys where they are made; a map's own order differs from process to process.",
    ),
    FieldRule(
        Kind.set_order, Layer.payload, rules_tools.set_order,
        "Sort lists that are sets, such as `required`; leave `enum`, `anyOf` and `prefixItems` as they are.",
    ),
    FieldRule(
        Kind.double_encoded, Layer.renderer, rules_field.double_encoded,
        "Parse the arguments into an object before the template writes them as JSON.",
    ),
    FieldRule(Kind.reserialised, Layer.payload, rules_field.reserialised, KEEP),
    FieldRule(
        Kind.null, Layer.payload, rules_field.null,
        "Write an empty value in one way: null, an empty text, or not at all.",
    ),
    FieldRule(
        Kind.parts, Layer.payload, rules_field.parts,
        "Send a text in one form, as a text or as a list of parts.",
    ),
    FieldRule(
        Kind.cache_control, Layer.payload, rules_field.cache_control,
        "Strip the mark: this template prints it.",
    ),
    FieldRule(
        Kind.ids, Layer.payload, rules_field.ids,
        "Keep the ids that were sent first: this template prints them.",
    ),
    FieldRule(Kind.trim, Layer.payload, rules_field.trim, KEEP),
    FieldRule(
        Kind.normaliser, Layer.payload, rules_field.normaliser,
        "Bring text into one Unicode form (NFC) where it enters; this tokenizer tells the forms apart.",
    ),
    FieldRule(
        Kind.moved_block, Layer.payload, rules_field.moved_block,
        "Leave it where it was first sent, and append a new one when it changes.",
    ),
    FieldRule(
        Kind.image_replaced, Layer.payload, rules_field.image_replaced,
        "Keep an image that was sent, in the same bytes, or send a pointer from the beginning.",
    ),
    FieldRule(
        Kind.hoist, Layer.payload, rules_field.hoist,
        "Leave a late system message in its place, or send it as a reminder in a user turn.",
    ),
    FieldRule(
        Kind.clock, Layer.payload, rules_text.clock,
        "Give the date by day only, or move the time to the newest user turn, or into a tool.",
    ),
    FieldRule(Kind.nonce, Layer.payload, rules_text.nonce, FREEZE),
    FieldRule(Kind.counter, Layer.payload, rules_text.counter, LAST),
    FieldRule(
        Kind.retrieval_in_prefix, Layer.payload, rules_text.retrieval_in_prefix,
        "Put what is retrieved for one question into the newest user turn, and keep it there afterwards.",
    ),
    FieldRule(Kind.history_rewrite, Layer.payload, rules_text.shortened, BIG_CUTS),
    FieldRule(
        Kind.branch, Layer.payload, rules_text.branch,
        "If a user edited or regenerated a turn, nothing; otherwise keep what was sent before as it is.",
    ),
    FieldRule(
        Kind.prompt_edit, Layer.payload, rules_text.prompt_edit,
        "Keep what all turns stand on as it is, and what differs between requests after it.",
    ),
)  # fmt: skip
ANSWERS = (
    SiteRule(Kind.reserialised, Layer.payload, rules_answer.answer_reserialised, KEEP),
    SiteRule(
        Kind.reserialised, Layer.renderer, rules_answer.answer_rewritten,
        "Give the template the text of the arguments as the model wrote it, or have both write JSON alike.",
    ),
    SiteRule(Kind.trim, Layer.payload, rules_answer.answer_trim, KEEP),
    SiteRule(
        Kind.trim, Layer.template, rules_answer.answer_trim_by_template,
        "Use a template that does not trim answers, or end generation before the space.",
    ),
    SiteRule(
        Kind.history_rewrite, Layer.payload, rules_answer.answer_without_reasoning,
        "Send the reasoning back with the answer: this template writes it.",
    ),
)  # fmt: skip
TEMPLATE = (
    SiteRule(
        Kind.template_clock, Layer.template, rules_template.template_clock,
        "Pin the date: pass it in the system prompt by day, or use a template that prints none.",
    ),
    SiteRule(
        Kind.template_arguments, Layer.template_kwargs, rules_template.template_arguments,
        "Keep the template's arguments (thinking, effort) the same for a session.",
    ),
    SiteRule(
        Kind.hoist, Layer.template, rules_template.hoist_by_template,
        "Send late instructions as a reminder in a user turn: this template moves system messages to the front.",
    ),
    SiteRule(Kind.template_asymmetry, Layer.template, rules_answer.answer_thought_dropped, VARIANT),
    SiteRule(Kind.branch, Layer.payload, rules_answer.answer_changed, KEEP),
    SiteRule(
        Kind.trim, Layer.template, rules_template.trim_by_template,
        "Send texts without space around them, or use a template that does not trim.",
    ),
    SiteRule(Kind.template_asymmetry, Layer.template, rules_template.template_asymmetry, VARIANT),
)  # fmt: skip
RULES: tuple[Rule, ...] = (*TOKENS, *HISTORY, *FIELDS, *ANSWERS, *TEMPLATE)


def candidates(site: Site) -> Iterator[tuple[Rule, Found]]:
    """What may be the cause, in the order of the table."""
    if site.in_tokens:
        yield from _all(TOKENS, site)
        return
    yield from _all(TOKENS[:3:2], site)
    if not site.in_answer:
        yield from _all(HISTORY, site)
        for change in site.changes():
            for rule in FIELDS:
                for found in rule.detect(site, change):
                    yield rule, found
    yield from _all(ANSWERS, site)
    yield from _all(TEMPLATE, site)


def _all(rules: Iterable[SiteRule], site: Site) -> Iterator[tuple[Rule, Found]]:
    for rule in rules:
        for found in rule.detect(site):
            yield rule, found
