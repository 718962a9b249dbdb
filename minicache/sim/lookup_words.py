"""A lookup in words: how much was found, and why no more. The longest sentences of all."""

from minicache.core.explain import RULES
from minicache.sim.finding import Finding
from minicache.sim.phrases import own_blocks, plural
from minicache.sim.tokens import TokenWords


def lookup_words(finding: Finding, radix: bool, block_size: int, words: TokenWords) -> str:
    """`r2 finds 16 of its 2,412 tokens. Its block 1 differs from r1's …`"""
    found = finding.explanation
    whole = finding.num_tokens // block_size
    blocks = "" if block_size == 1 else f", {found.num_tokens // block_size:,} of {plural(whole, 'whole block')}"
    head = (
        f"{found.request} looks up its prefix and finds {found.num_tokens:,} of {plural(finding.num_tokens, 'token')}"
    )
    return f"{head}{blocks}. {reason_words(finding, radix, block_size, words)}"


def reason_words(finding: Finding, radix: bool, block_size: int, words: TokenWords) -> str:
    """Why no more was found."""
    found = finding.explanation
    one = block_size == 1
    match found.reason:
        case "difference" if differs_inside(finding):
            return _ends_inside(finding, block_size)
        case "difference":
            return _difference(finding, radix, block_size, words)
        case "not_computed" if finding.waits:
            return f"Nobody has computed more yet: {found.other}, which begins alike, waits too."
        case "unknown":
            return _unknown(finding)
        case "last_token" if one:
            return (
                f"All its tokens but one were found ({found.num_tokens:,}): the last must be computed to have logits."
            )
        case "too_short" if one:
            return f"{found.request} has a single token, and one must be computed to have logits."
        case "no_entry":
            return ""
        case "whole" | "last_token" | "too_short" | "skipped":
            return RULES[found.reason].format(request=found.request, found=f"{found.num_tokens:,}")
        case _ if one:
            its = f"lock {found.block} of {found.request}"
            text = found.sentence.replace(f"B{its}", f"Its token {found.block}")
            return text.replace(f"b{its}", f"token {found.block} of {found.request}").replace("its block", "it")
        case _:
            return found.sentence.replace(f"Block {found.block} of {found.request}", f"Its block {found.block}")


def differs_inside(finding: Finding) -> bool:
    """Whether the other request does not differ but ends, so that there is no full block to share."""
    found = finding.explanation
    return found.reason == "difference" and found.token is not None and finding.there is None


def _difference(finding: Finding, radix: bool, block_size: int, words: TokenWords) -> str:
    found = finding.explanation
    if finding.here is None or finding.there is None:
        return found.sentence
    where = "Its token" if block_size == 1 else f"Its block {found.block} differs from {found.other}'s at token"
    differs = f" differs from {found.other}'s" if block_size == 1 else ""
    here, there = words.one(finding.here, finding.here_behind), words.one(finding.there, finding.there_behind)
    text = f"{where} {found.token:,}{differs}: {here} stands there instead of {there}."
    if not finding.blocks_behind:
        return text
    same = ""
    if finding.same_behind and (block_size > 1 or 2 * finding.same_behind > finding.blocks_behind):
        hold = "holds" if finding.same_behind == 1 else "hold"
        same = f", although {finding.same_behind:,} of them {hold} the same text"
        if finding.same_behind == finding.blocks_behind:
            same = ", although they all hold the same text"
        if finding.blocks_behind == 1:
            same = ", although it holds the same text"
        else:
            same += _differ_too(finding, block_size, words)
    if radix:
        rest = plural(finding.blocks_behind, "token" if block_size == 1 else "block")
        return f"{text} The path in the tree parts there, so the {rest} after it cannot be reused{same}."
    if finding.blocks_behind == 1:
        return f"{text} Its hash is new, so the hash of the block after it is new too{same}."
    return f"{text} Its hash is new, so the hashes of the {finding.blocks_behind:,} blocks after it are new too{same}."


def _differ_too(finding: Finding, block_size: int, words: TokenWords) -> str:
    """Which of the blocks behind the difference do not hold the same text; where, if it is one alone."""
    blocks = finding.differ_behind
    if finding.only_at is None or finding.only_here is None:
        return f"; {own_blocks(blocks)} differ too" if blocks and block_size > 1 else ""
    if finding.only_there is None:
        return f"; {finding.explanation.other} has no more than these"
    only = f"its token {finding.only_at:,} in {words.run(finding.only_near)} differs too"
    if block_size > 1:
        only = f"{own_blocks(blocks)}, {words.run(finding.only_near)}, differs too, at token {finding.only_at:,}"
    return f"; only {only}: {words.one(finding.only_here)} instead of {words.one(finding.only_there)}"


def _unknown(finding: Finding) -> str:
    found = finding.explanation
    if finding.ended is not None:
        return f"The next token was the last that {finding.ended} generated, and that one has no KV: nobody needed it."
    if found.num_tokens:
        return "No earlier request is known that goes on in the same way."
    return "No earlier request is known that begins in the same way."


def _ends_inside(finding: Finding, block_size: int) -> str:
    found = finding.explanation
    text = f"It is the same as {found.other} up to token {found.token:,}, where {found.other} ends"
    if block_size == 1:
        return f"{text}."
    return f"{text}, in the middle of its block {found.block}: only full blocks are shared."
