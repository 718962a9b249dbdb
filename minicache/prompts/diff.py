"""Which token broke the prefix, what caused it, and how much reuse a repair would add.

Two requests can differ in several places, and the first difference hides the others. So causes are peeled: find the
first divergence, find its cause, repair it in B, and look again. The gain of a cause is the reuse that its repair adds.
"""

from dataclasses import dataclass, field, replace

from minicache.prompts.earlier import Earlier
from minicache.prompts.kinds import Kind, Layer
from minicache.prompts.prompt import Prompt
from minicache.prompts.reuse import Cached, Reuse
from minicache.prompts.rules.rule import Found, Rule
from minicache.prompts.rules.table import RULES, candidates
from minicache.prompts.site import Later, Site, Splice
from minicache.text.origin import Path

MAX_CAUSES = 24  # later causes are not looked for, and the report says so
MAX_CHARACTERS = 2**26  # of all prompts compared to find causes; then no more are looked for, and the report says so
PARTLY = "those after the last cause were not looked for."
BEFORE, AFTER = 24, 18  # characters of context before and after the divergence


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause: its place in the body that was sent, the two texts there, and the reuse before and after its repair.

    `path` is `None` if no field of the request is concerned. `offset` counts as in `Found`. `more` holds further pairs
    of texts of the same cause.
    """

    layer: Layer
    kind: Kind
    path: Path | None
    offset: int | None
    a_text: str
    b_text: str
    before: Reuse
    after: Reuse
    fix: str
    detail: str = ""
    more: tuple[tuple[str, str], ...] = ()

    @property
    def gain_tokens(self) -> int:
        return self.after.radix_tokens - self.before.radix_tokens

    @property
    def gain_blocks(self) -> int:
        return self.after.blocks - self.before.blocks


@dataclass(frozen=True, slots=True)
class Diff:
    """What two prompts share, and why they do not share more.

    `diverge_token` is the first token that differs, from 0, or `None` if one prompt extends the other; `characters` are
    the places in A's and B's text at which it begins. `reuse` is today's, `ideal` the reuse after all repairs.
    `context` is the common text before the divergence, then A's and B's text after it.
    """

    block_size: int
    a_tokens: int
    b_tokens: int
    generated_tokens: int
    diverge_token: int | None
    characters: tuple[int, int]
    reuse: Reuse
    ideal: Reuse
    context: tuple[str, str, str]
    causes: tuple[Cause, ...]
    notes: tuple[str, ...] = field(default=())
    only_appends: bool = False  # B's JSON is A's JSON, unchanged, with nothing but appended parts

    @property
    def cached_tokens_of_a(self) -> int:
        return self.a_tokens + self.generated_tokens

    @property
    def total_blocks(self) -> int:
        """The whole blocks that A left in the cache: B reuses all of them if it extends A."""
        return self.cached_tokens_of_a // self.block_size

    @property
    def lost(self) -> bool:
        return any(cause.gain_tokens > 0 for cause in self.causes)


def compare(earlier: Earlier, prompt: Prompt, block_size: int = 16) -> Diff:
    """Compare B's prompt with the prompt and answer that A left in the cache. Raises as rendering does."""
    cached = Cached(earlier.tokens, block_size)
    later = Later(earlier, prompt)
    reuse = cached.reuse(later.tokens)
    causes, notes, ideal = _peel(later, cached, reuse)
    ended = reuse.lcp in (len(earlier.tokens), len(later.tokens))
    at = _characters(later, reuse.lcp)
    a, b = earlier.text[at[0] :], prompt.text[at[1] :]
    return Diff(
        block_size,
        len(earlier.prompt.tokens),
        len(prompt.tokens),
        len(earlier.generated_tokens),
        None if ended else reuse.lcp,
        at,
        reuse,
        ideal,
        (earlier.text[max(at[0] - BEFORE, 0) : at[0]], a[:AFTER], b[:AFTER]),
        tuple(causes),
        tuple(notes),
    )


def _characters(later: Later, token: int) -> tuple[int, int]:
    """The characters of A's and B's text at which the first differing token begins."""
    site = later.site
    if site is not None:
        return site.a_at, site.b_at
    length = min(len(later.earlier.text), len(later.prompt.text))
    return length, length


def _peel(later: Later, cached: Cached, reuse: Reuse) -> tuple[list[Cause], list[str], Reuse]:
    causes: list[Cause] = []
    left = MAX_CHARACTERS
    while (site := later.site) is not None and not is_end(site):
        if len(causes) == MAX_CAUSES:
            return causes, [f"The requests have more than {MAX_CAUSES} causes; only the first were looked for."], reuse
        if left < 0:
            return causes, [f"The prompts are too long to look for all differences; {PARTLY}"], reuse
        tries, rule, found, repaired = _first_cause(site)
        left -= tries * len(site.b_text)
        if rule.layer is Layer.none:
            causes.append(_cause(rule, found, reuse, reuse))
            return causes, [], reuse
        after = cached.reuse(repaired.tokens)
        cause = _cause(rule, found, reuse, after)
        if causes and (cause.layer, cause.kind, cause.path) == (causes[-1].layer, causes[-1].kind, causes[-1].path):
            pairs = (*causes[-1].more, (cause.a_text, cause.b_text), *cause.more)
            causes[-1] = replace(causes[-1], after=after, more=pairs)
        else:
            causes.append(cause)
        later, reuse = repaired, after
    return causes, [], reuse


def _first_cause(site: Site) -> tuple[int, Rule, Found, Later]:
    """The first rule of the table whose repair moves the divergence, with its finding and B repaired, after the number
    of repairs that were tried. If no repair moves it, the template is the cause, and the repair replaces the whole rest
    of B's text."""
    tries = 1
    for tries, (rule, found) in enumerate(candidates(site), 1):
        repaired = site.later.repaired(found.repair)
        if repaired is not None and _moves(site, repaired):
            return tries, rule, found, repaired
    rest = Splice(len(site.a_text), len(site.b_text))
    found = Found(rest, None, None, site.a_text[site.a_at :], site.b_text[site.b_at :])
    return tries, RULES[-1], found, Later(site.earlier, site.later.prompt, rest.a_end, rest.b_end)


def _moves(site: Site, repaired: Later) -> bool:
    after = repaired.site
    return after is None or (after.token, after.a_at) > (site.token, site.a_at)


def _cause(rule: Rule, found: Found, before: Reuse, after: Reuse) -> Cause:
    where = found.path, found.offset, found.a, found.b
    return Cause(rule.layer, rule.kind, *where, before, after, rule.fix, found.detail, found.more)


def is_end(site: Site) -> bool:
    """Whether a difference here is no loss, because B continues in its own way: it differs from A only in A's
    generation prompt or answer, or B's own conversation ends here."""
    messages, number = site.b.messages, len(site.a.messages)
    if site.in_tokens and site.earlier.start_of(site.token + 1) - site.a_at > len(site.b_text) - site.b_at:
        return True  # B ends inside one of A's tokens
    if "prompt" in site.a.payload:
        return False
    if site.in_answer:
        answered = len(messages) > number and messages[number].get("role") == "assistant"
        return not answered or not site.earlier.generated
    match site.a_path:
        case ("messages", int(index), *_):
            return site.b_path is None and index >= len(messages)
    return False
