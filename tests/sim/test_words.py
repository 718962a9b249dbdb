"""The sentences: every event has one, every lookup its reason, and every rule names a function that exists."""

import re
from importlib import import_module
from typing import get_args

import pytest

from minicache.core import events as ev
from minicache.core.event_log import TYPES
from minicache.core.explain import Explanation, Reason
from minicache.sim import words
from minicache.sim.explainer import explain_request
from minicache.sim.fork import SetBlockSize, ShrinkPool
from minicache.sim.library import find_scenario, scenario_names
from minicache.sim.narrator import Narrator
from minicache.sim.phrases import block_ranges, listed, named_blocks, own_blocks, plural, ranges
from minicache.sim.rules import AHEAD, EVENTS, IN_THE_TREE, LOOKUP, LOOKUPS
from minicache.sim.scenario_file import read_scenario
from minicache.sim.timeline import Timeline
from minicache.sim.tokens import TokenWords, segment_tokens, show_token, show_tokens
from minicache.sim.transcript import transcript


def lines_of(name, kind=None, *settings):
    return [line.words for line in Narrator(Timeline.record(find_scenario(name, settings), kind)).lines()]


def lookups_of(name, kind=None, *settings):
    return [line for line in lines_of(name, kind, *settings) if " looks up its prefix" in line]


def test_every_event_type_has_words_and_a_rule():
    assert {f"on_{name}" for name in TYPES} <= set(vars(words))
    assert set(EVENTS) | {ev.PrefixMatched} == set(TYPES.values())
    assert set(LOOKUPS) >= set(get_args(Reason)) - {"not_looked_up"}
    short = [words.reason_in_short(Explanation("b", reason, token=1234, there=7)) for reason in get_args(Reason)]
    short.append(words.reason_in_short(Explanation("b", "difference", token=1234, there=None)))
    assert len(set(short)) == len(get_args(Reason)) + 1
    assert "differs at token 1,234" in short
    assert all(len(text) <= 30 for text in short), "it fits a column"


@pytest.mark.parametrize(
    "decided_by", sorted({rule.decided_by for rule in (*EVENTS.values(), *IN_THE_TREE.values())} | set(LOOKUP.values()))
)
def test_the_function_that_decided_exists(decided_by):
    file, path = decided_by.split(" ")
    thing = import_module(f"minicache.{file.removesuffix('.py').replace('/', '.')}")
    for name in path.split("."):
        thing = getattr(thing, name)
    assert callable(thing)


@pytest.mark.parametrize("name", scenario_names())
def test_every_line_is_a_whole_sentence(name):
    for kind in find_scenario(name).kinds:
        for line in lines_of(name, kind):
            assert re.match(r"[A-Za-z0-9].*[.]$", line), line
            assert not re.search(r"None|  |\b1 (blocks|tokens)\b|array\(|\{|\}", line), line


def test_a_timestamp_at_the_top_with_the_hash_chain():
    assert lookups_of("timestamp-top", "hash")[:2] == [
        "user1 looks up its prefix and finds 0 of 672 tokens, 0 of 42 whole blocks. No earlier request is "
        "known that begins in the same way.",
        "user2 looks up its prefix and finds 0 of 672 tokens, 0 of 42 whole blocks. Its block 0 differs from user1's "
        'at token 13: "2" stands there instead of "1". The hash of this block is new, and so are the hashes of the 41 '
        'blocks after it, although 40 of them hold the same text; only its block 40, "User 2 asks: whe", differs '
        "too, at token "
        '645: "2" instead of "1".',
    ]


def test_a_timestamp_at_the_top_with_the_radix_tree():
    assert next(line for line in lookups_of("timestamp-top", "radix") if line.startswith("user2")) == (
        'user2 looks up its prefix and finds 13 of 672 tokens. Its token 13 differs from user1\'s: "2" stands there '
        'instead of "1". The path in the tree parts there, so the 658 tokens after it cannot be reused, although 657 '
        'of them hold the same text; only its token 645 in "User 2 asks: whe" differs too: "2" instead of "1".'
    )


def test_two_equal_prompts_with_the_hash_chain():
    lines = lines_of("two-equal-prompts", "hash")
    assert lines[:11] == [
        'user1 arrives with 40 tokens, which is 2 whole blocks and 8 tokens more: "What is the capital city of New '
        'Zealand?". It may generate 2 tokens, and is number 1 in the queue.',
        'user2 arrives with 40 tokens, which is 2 whole blocks and 8 tokens more: "What is the capital city of New '
        'Zealand?". It may generate 2 tokens, and is number 2 in the queue.',
        "Step 1 begins at 0.000 s (modelled): 0 requests run, 2 wait.",
        "user1 looks up its prefix and finds 0 of 40 tokens, 0 of 2 whole blocks. No request has computed more yet: "
        "user2, which begins in the same way, waits too.",
        "user1 takes 3 fresh blocks from the head of the free queue: b1–b3.",
        "user1 is admitted: 0 of its 40 tokens come from the cache, 40 are computed in this step.",
        "2 blocks of user1 are published (a lookup can find them now): b1, b2, under hashes 91b4d8c6… to 33f4f5e3…; "
        "their KV is computed later in this step.",
        "user2 looks up its prefix and finds 32 of 40 tokens, 2 of 2 whole blocks. Every full block was found. Only "
        "full blocks are cached, and its last 8 tokens do not fill a block.",
        "user2 adopts 2 cached blocks: b1, b2, which it shares with user1.",
        "user2 takes 1 fresh block from the head of the free queue: b4.",
        "user2 is admitted: 32 of its 40 tokens come from the cache, 8 are computed in this step.",
    ]


def test_two_equal_prompts_with_the_radix_tree():
    lines = lines_of("two-equal-prompts", "radix")
    assert lines[7].endswith("Its token 0 is the same as user1's, which has not computed it yet.")
    assert lines[17:22] == [
        "The first 40 tokens of user2 are in the tree, on the path of node 1, which counts as used just now.",
        "user2 computed 40 blocks that another request had published in the meantime: its copies b41–b80 are freed.",
        "user2's block table names the tree's blocks from entry 0 on: b1–b40.",
        "user2 locks node 1 and every node above it: they cannot be evicted.",
        "user2 generates #8529, its token 1 of 2.",
    ]


@pytest.mark.parametrize(
    ("name", "kind", "request_id", "reason"),
    [
        ("last-token", "hash", "equal", "One token must be computed to get logits, so the block with its last token"),
        ("last-token", "radix", "equal", "All its tokens but the last were found: the last must be computed"),
        ("short-prompt", "hash", "fifteen-2", "It has no block to reuse: only full blocks are cached"),
        ("tail-first", "hash", "b-later", "Its block 1 was in the cache until step 3: x needed blocks."),
        ("adapters-and-salts", "hash", "legal-1", "but in another namespace (adapter, salt or extra key)"),
        ("multi-turn", "radix", "turn2", "The next token is the last that turn1 generated: it has no KV"),
        (
            "multi-turn",
            "hash",
            "turn2",
            "up to token 163, where turn1 ends in the middle of a block: only full blocks",
        ),
        ("sglang-article", "radix", "chat1-turn3", "Its token 55 was in the cache until step"),
    ],
)
def test_the_reasons_of_lookups(name, kind, request_id, reason):
    [line] = [line for line in lookups_of(name, kind) if line.startswith(f"{request_id} ")]
    assert reason in line


def test_pressure_in_words():
    lines = lines_of("preempt-and-resume", "hash")
    assert (
        "second is preempted: first needed a block and none was free. It must give back its blocks, and with them "
        "its KV; "
        "it keeps its tokens and waits again, at the front of the queue."
    ) in lines
    assert any("is admitted again after its preemption" in line for line in lines)
    assert any(line.startswith("second does not fit: it needs") for line in lines)
    assert any(re.match(r"Blocks? .* (is|are) evicted: \w+ needed blocks\.", line) for line in lines)


def test_a_transcript_has_every_event():
    timeline = Timeline.record(find_scenario("block-straddle"))
    numbered = [line for line in transcript(timeline) if line[:4].strip()]
    assert [int(line.split()[0]) for line in numbered] == list(range(len(timeline)))


@pytest.mark.parametrize("change", [ShrinkPool(20), SetBlockSize(2), SetBlockSize(64)], ids=repr)
def test_a_fork_is_told_to_its_end(change):
    timeline = Timeline.record(find_scenario("chunked-prefill"))
    fork = timeline.fork(timeline.place_of_step(6), change)
    told = [line.words for line in Narrator(fork).lines()]
    assert len(told) == len(fork)
    assert told[: fork.forked_at] == [line.words for line in Narrator(timeline).lines()][: fork.forked_at]
    assert told[-1].startswith("Step ")
    assert explain_request(fork, "again").accounts


def test_one_is_not_many():
    lines = lines_of("preempt-and-resume", "hash")
    assert "Block b7 is evicted: first needed blocks. Lookups can no longer find what it held." in lines
    assert any(re.search("[;:] block b8 is empty and goes to the head", line) for line in lines)
    assert not any(re.search(r"\b1 of them hold\b|the 1 block", line) for line in lines)
    assert any("although 1 of them holds the same text" in line for line in lines)


def second_lookup(first, second, after):
    """The sentence for the lookup of `second`, over blocks of 4 tokens, sent with `first` or `after` it."""
    toml = (
        'title = "t"\nstory = "s"\n[cache]\nblock_size = 4\nnum_blocks = 64\n'
        f'[[request]]\nid = "r0"\nprompt = [{{ text = "{first}" }}]\nmax_tokens = 1\n'
        f'[[request]]\nid = "r1"\nprompt = [{{ text = "{second}" }}]\nmax_tokens = 1\n'
    )
    if after:
        toml += 'after = "r0"\n'
    lines = list(Narrator(Timeline.record(read_scenario(toml, "test", "test.toml", {}))).lines())
    return next(line.words for line in lines if line.words.startswith("r1 looks up its prefix"))


@pytest.mark.parametrize(
    ("first", "second", "after", "end"),
    [
        ("aaaabbbbccccdddde", "Xaaabbbbccccdddde", True, "although they all hold the same text."),
        (
            "aaaabbbbccccdddde",
            "Xaaabbbbccccddxde",
            True,
            'although 2 of them hold the same text; only its block 3, "ddxd", differs too, at token 14: "x" instead of '
            '"d".',
        ),
        (
            "aaaabbbbccccdddde",
            "XaaabbbbxxxxddxdE",
            True,
            "although 1 of them holds the same text; its blocks 2, 3 differ too.",
        ),
        (
            "aaaabbbbcccc",
            "Xaaabbbbccccdddde",
            False,
            "although 2 of them hold the same text; r0 has no tokens after those.",
        ),
        ("aaaabbbbcccc", "Xaaaxxxxyyyy", True, "and so are the hashes of the 2 blocks after it."),
    ],
)
def test_of_the_blocks_after_a_difference_those_that_differ_too_are_named(first, second, after, end):
    assert second_lookup(first, second, after).endswith(end)


@pytest.mark.parametrize("name", scenario_names())
def test_what_is_said_of_the_blocks_after_it_is_so_in_every_run(name):
    for kind in find_scenario(name).kinds:
        timeline = Timeline.record(find_scenario(name), kind)
        size, view = timeline.settings["block_size"], timeline.at(len(timeline) - 1)
        for line in Narrator(timeline).lines():
            said = re.search(
                r"although ([\d,]+) of them holds? the same text; only its (?:block|token) ([\d,]+)\b", line.words
            )
            if said is None:
                continue
            found = timeline.findings.at(line.place)
            ours = view.ended[found.request].tokens[: found.length]
            theirs = view.ended[found.other].tokens[: found.other_length]
            first, last = found.token // size + 1, len(ours) // size
            differ = [b for b in range(first, last) if ours[b * size :][:size] != theirs[b * size :][:size]]
            assert len(differ) == 1
            assert int(said[1].replace(",", "")) == last - first - 1
            place = int(said[2].replace(",", ""))
            assert place == differ[0]


def test_a_log_that_does_not_name_its_cache_is_described_as_what_it_is():
    recorded = Timeline.record(find_scenario("radix-split-and-prune"), "radix")
    unnamed = Timeline(recorded.settings["num_blocks"], recorded.settings["block_size"], {"clock": "modelled"})
    for event in recorded.events:
        unnamed.add(event)
    lines = [line.words for line in Narrator(unnamed).lines()]
    assert any("The path in the tree parts there" in line for line in lines)
    assert not any("hash" in line for line in lines)


def test_a_prompt_inserted_once_more_says_what_for():
    lines = lines_of("two-equal-prompts", "radix")
    assert (
        "The prompt of user1 alone (40 tokens, node 1) gets priority 1: the eviction strategy `priority` evicts "
        "answers "
        "before prompts."
    ) in lines


def test_no_request_is_compared_with_one_that_waits():
    """Nothing that `second` begins with has been computed when `first` looks up, so going on like it would not help."""
    first = lookups_of("preempt-and-resume", "hash")[0]
    assert first.endswith("No earlier request is known that begins in the same way.")


@pytest.mark.parametrize("name", scenario_names())
def test_what_comes_later_in_a_prompt_is_after_and_never_behind(name):
    scenario = find_scenario(name)
    told = [scenario.title, scenario.story]
    for kind in scenario.kinds:
        for line in Narrator(Timeline.record(scenario, kind)).lines():
            told += [line.words, line.rule.name, line.rule.otherwise]
    assert [words for words in told if "behind" in words] == []


GIVES_UP_WHAT_IT_PUBLISHED = ("preempt-and-resume", "block_size=1", "num_blocks=37", "victim=least_output")


@pytest.mark.parametrize(
    ("settings", "seen"),
    [
        *(((name,), (AHEAD.name,)) for name in scenario_names() if "hash" in find_scenario(name).kinds),
        (("thundering-herd", "publish_at=compute"), ("full blocks only",)),
        (GIVES_UP_WHAT_IT_PUBLISHED, (AHEAD.name, "unpublished")),
    ],
    ids=str,
)
def test_what_is_published_ahead_of_its_kv_is_computed_in_the_same_step_or_given_up(settings, seen):
    """The rule says why it is safe: so it is, in every run."""
    name, *changes = settings
    ahead = {}  # block -> who published it, and its tokens up to there
    told = set()
    timeline = Timeline.record(find_scenario(name, changes), "hash")
    size = timeline.settings["block_size"]
    for line in Narrator(timeline).lines():
        event = line.event
        if isinstance(event, ev.BlocksPublished):
            told.add(line.rule.name)
            assert (line.rule == AHEAD) == ("computed later in this step" in line.words)
            if line.rule == AHEAD:
                ends = range(event.start + size, event.start + len(event.tokens) + 1, size)
                ahead |= {block: (event.request, end) for block, end in zip(event.blocks, ends, strict=True)}
        elif isinstance(event, ev.BlocksUnpublished):
            told.add("unpublished")
            ahead = {block: one for block, one in ahead.items() if block not in event.blocks}
        elif isinstance(event, ev.TokensComputed):
            end = event.start + event.num_tokens
            ahead = {block: one for block, one in ahead.items() if one[0] != event.request or one[1] > end}
        elif isinstance(event, ev.StepFinished):
            assert not ahead
    assert told >= set(seen)


def test_who_is_preempted_still_has_the_blocks_that_it_must_give_back():
    timeline = Timeline.record(find_scenario("preempt-and-resume"), "hash")
    lines = list(Narrator(timeline).lines())
    preempted = {line.place: line.event.request for line in lines if isinstance(line.event, ev.RequestPreempted)}
    assert preempted
    for place, request in preempted.items():
        assert timeline.at(place).tables[request]
        assert "must give back its blocks" in lines[place].words
        after = lines[place + 1].event
        assert isinstance(after, ev.BlocksReleased)
        assert after.request == request


def test_phrases():
    assert ranges([1, 2, 3, 4, 9, 8, 7, 12]) == "1–4, 9–7, 12"
    assert ranges([5, 6]) == "5, 6"
    assert block_ranges([1, 2, 3, 5, 7], limit=2) == "b1–b3, b5, …"
    assert (named_blocks([3]), own_blocks([3]), own_blocks([0, 1, 2])) == ("block b3", "its block 3", "its blocks 0–2")
    assert (plural(1, "block"), plural(1200, "block")) == ("1 block", "1,200 blocks")
    assert (listed([]), listed(["a"]), listed("abc")) == ("", "a", "a, b and c")
    assert (show_token(97), show_token(10), show_token(300)) == ('"a"', "byte 0x0a", "#300")
    assert show_tokens([*b"hello ", 300]) == '"hello …"'
    assert show_tokens([300, 301]) == "#300 … #301"


def test_tokens_of_a_named_part_are_told_by_their_place_in_it():
    rules, more = segment_tokens(0, "rules", 40), segment_tokens(0, "more", 40)
    words = TokenWords(lambda: {"rules": rules, "more": more})
    assert words.run(rules) == 'tokens 0 to 39 of "rules"'
    assert words.run([*more[3:9], 97]) == 'tokens 3 to 8 of "more" …'
    assert words.run([97, *rules]) == '"a…"'
    assert (words.one(rules[5]), words.one(97)) == ('token 5 of "rules"', '"a"')
    assert TokenWords().run(rules) == f"#{rules[0]} … #{rules[-1]}"


def test_of_several_places_at_which_a_token_may_stand_the_tokens_behind_it_tell_which_it_is():
    words = TokenWords(lambda: {"a": [300, 301, 302], "b": [400, 300, 303]})
    assert words.one(300) == "#300"
    assert words.one(300, [301]) == 'token 0 of "a"'
    assert words.one(300, [303]) == 'token 1 of "b"'
    assert words.run([300, 303]) == 'tokens 1 to 2 of "b"'


@pytest.mark.parametrize("name", scenario_names())
def test_blocks_of_the_pool_and_of_a_prompt_never_look_alike(name):
    """A block of the pool is `b7`; a bare number is said only of a prompt's: `its block 7`, `block 7 of r0`."""
    for kind in find_scenario(name).kinds:
        for line in transcript(Timeline.record(find_scenario(name), kind)):
            rest = re.sub(r"[Ii]ts blocks? \d|\bblocks? [\d–, ]+ of [a-z]", "", line)
            assert not re.search(r"\b[Bb]locks? \d", rest), line
            rest = rest.replace("none was free", "").replace("free, but can still be found", "")
            assert not re.search(r"\bfree(?! queue)\b", rest), line
