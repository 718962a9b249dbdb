"""The texts of the two prompts are equal, and their tokens are not."""

from collections.abc import Iterator

from minicache.prompts.kinds import Kind, Layer
from minicache.prompts.reuse import common_prefix
from minicache.prompts.rules.rule import Found, SiteRule
from minicache.prompts.site import Retoken, Site, Splice
from minicache.text.origin import Field


def double_bos(site: Site) -> Iterator[Found]:
    """One prompt begins with its first token twice: the template writes it and the tokenizer adds it."""
    if site.token != 1 or len(site.earlier.prompt.lead) == len(site.later.prompt.lead):
        return
    a, b = list(site.earlier.tokens), list(site.later.tokens)
    if b[0] == b[1] and common_prefix(a, b, 1, 2) > 0:
        yield _bos(site, b[:1] + b[2:])
    elif a[0] == a[1] and common_prefix(a, b, 2, 1) > 0:
        yield _bos(site, a[:1] + b)


def _bos(site: Site, tokens: list[int]) -> Found:
    once, twice = [[t] * n for t, n in ((tokens[0], 1), (tokens[0], 2))]
    a_twice = site.earlier.tokens[1] == site.earlier.tokens[0]
    return Found(Retoken(tokens), None, None, str(twice if a_twice else once), str(once if a_twice else twice))


def seam(site: Site) -> Iterator[Found]:
    """Only A's last token differs: in B it merged with the text that follows it."""
    last = site.token == len(site.earlier.tokens) - 1
    if last and site.b_text.startswith(site.a_text[site.a_at :], site.b_at):
        yield _from_here(site)


def retokenised(site: Site) -> Iterator[Found]:
    """The model generated its answer in tokens that the tokenizer does not choose for the same text."""
    if site.in_tokens and site.a_at >= site.earlier.answer_start:
        yield _from_here(site)


def other_tokens(site: Site) -> Iterator[Found]:
    """Text of the prompts themselves in different tokens: they come from two tokenizers, or two versions of one."""
    if site.in_tokens:
        yield _from_here(site)


def _from_here(site: Site) -> Found:
    """A finding whose repair puts A's tokens in place of B's, up to the last boundary between A's tokens before which
    the texts agree."""
    length = common_prefix(site.a_text, site.b_text, site.a_at, site.b_at)
    while length > 0 and site.earlier.tokens_before(site.a_at + length) is None:
        length -= 1
    origin = site.b_origin
    path, offset = (origin.path, origin.offset) if isinstance(origin, Field) else (None, None)
    texts = site.a_text[site.a_at : site.a_at + length], site.b_text[site.b_at : site.b_at + length]
    return Found(Splice(site.a_at + length, site.b_at + length), path, offset, *texts)


RULES: tuple[SiteRule, ...] = (
    SiteRule(
        Kind.double_bos, Layer.tokenizer, double_bos,
        "Tokenize with add_special_tokens=false at every endpoint: the template already writes the first token.",
    ),
    SiteRule(
        Kind.retokenised, Layer.tokenizer, retokenised,
        "Send the generated token ids back (token in, token out): the text does not determine the tokens that the "
        "model chose.",
    ),
    SiteRule(
        Kind.seam, Layer.tokenizer, seam,
        "End the shared part with a special token or at the end of a word: here its last token merged with the text "
        "after it.",
    ),
    SiteRule(
        Kind.retokenised, Layer.tokenizer, other_tokens,
        "Use the same version of the same tokenizer at every endpoint.",
    ),
)  # fmt: skip
# These two can also explain a place where the texts differ.
WHERE_TEXTS_DIFFER = tuple(rule for rule in RULES if rule.kind in (Kind.double_bos, Kind.seam))
