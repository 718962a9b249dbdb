"""Equal text and other tokens."""

from collections.abc import Iterator

from minicache.prompts.figures import common_prefix
from minicache.prompts.found import Found
from minicache.prompts.site import Retoken, Site, Splice
from minicache.text.origin import Field


def double_bos(site: Site) -> Iterator[Found]:
    """One prompt begins with its first token twice: the template prints it, and the tokenizer adds it."""
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
    """Only the last token of A is another one: the text that B goes on with has joined it."""
    last = site.token == len(site.earlier.tokens) - 1
    if last and site.b_text.startswith(site.a_text[site.a_at :], site.b_at):
        yield _from_here(site)


def retokenised(site: Site) -> Iterator[Found]:
    """The model chose other tokens for its answer than the tokenizer does for the same text."""
    if site.in_tokens and site.a_at >= site.earlier.answer_start:
        yield _from_here(site)


def other_tokens(site: Site) -> Iterator[Found]:
    """Equal text inside the prompts, and other tokens: two tokenizers, or two versions of one."""
    if site.in_tokens:
        yield _from_here(site)


def _from_here(site: Site) -> Found:
    """A's tokens in the place of B's, up to the last boundary of A's tokens at which the texts still agree."""
    length = common_prefix(site.a_text, site.b_text, site.a_at, site.b_at)
    while length > 0 and site.earlier.tokens_before(site.a_at + length) is None:
        length -= 1
    origin = site.b_origin
    path, offset = (origin.path, origin.offset) if isinstance(origin, Field) else (None, None)
    texts = site.a_text[site.a_at : site.a_at + length], site.b_text[site.b_at : site.b_at + length]
    return Found(Splice(site.a_at + length, site.b_at + length), path, offset, *texts)
