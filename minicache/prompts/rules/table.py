"""The table of rules: everything that can break a prefix, in the order in which causes are looked for.

The cause of a divergence is the first rule that finds something whose repair moves the divergence. The order of the
table is therefore the order of verdicts:

    tokens      the texts are equal and the tokens are not
    history     the list of messages, or of tools, as a whole
    fields      one value of the request that differs, by its structure
    words       one value of the request that differs, by the words in it
    answers     the answer that A generated, and how B sends it back
    template    the requests are equal here and the template writes them differently
"""

from collections.abc import Iterable, Iterator
from itertools import islice

from minicache.prompts.rules import answers, fields, history, template, tokens, words
from minicache.prompts.rules.rule import FieldRule, Found, Rule, SiteRule
from minicache.prompts.site import Site

FIELDS: tuple[FieldRule, ...] = (*fields.RULES, *words.RULES)
RULES: tuple[Rule, ...] = (*tokens.RULES, *history.RULES, *FIELDS, *answers.RULES, *template.RULES)


def candidates(site: Site) -> Iterator[tuple[Rule, Found]]:
    """Every finding that may be the cause of the divergence, in the order of the table."""
    if site.in_tokens:
        yield from _all(tokens.RULES, site)
        return
    yield from _all(tokens.WHERE_TEXTS_DIFFER, site)
    if not site.in_answer:
        yield from _all(history.RULES, site)
        for change in islice(site.changes(), site.patience):
            for rule in FIELDS:
                for found in rule.detect(site, change):
                    yield rule, found
    yield from _all(answers.RULES, site)
    yield from _all(template.RULES, site)


def _all(rules: Iterable[SiteRule], site: Site) -> Iterator[tuple[Rule, Found]]:
    for rule in rules:
        for found in rule.detect(site):
            yield rule, found
