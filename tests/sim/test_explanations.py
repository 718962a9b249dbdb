"""Explanations: of a request, a block, an event: what happened, the rule, what would have made it different."""

import re
from typing import get_args

import pytest

from minicache.core import EventStream, HashChainCache, Request, Scheduler
from minicache.core.explain import Explanation
from minicache.core.losses import Loss, LossCause
from minicache.sim.errors import BadScenario, UnknownThing
from minicache.sim.explainer import explain_block, explain_event, explain_request
from minicache.sim.fork import SetBlockSize, ShrinkPool
from minicache.sim.library import find_scenario
from minicache.sim.narrator import Narrator
from minicache.sim.rules import LOOKUPS, _reason
from minicache.sim.timeline import Timeline


def test_a_request_explained():
    told = explain_request(Timeline.record(find_scenario("timestamp-top"), "hash"), "user2")
    assert told.summary == (
        "user2 is finished: its prompt has 672 tokens, it hit 0 of them, was never preempted and has generated 4 of 4 "
        "tokens."
    )
    lookup = told.accounts[1]
    assert lookup.rule.name == "nothing after a difference"
    assert lookup.rule.otherwise == (
        "If user2 continued as user1 does, it would find more: put the parts that differ after the parts that are "
        "shared."
    )
    assert lookup.rule.decided_by == "core/hash_chain_cache.py HashChainCache.lookup"
    assert str(lookup).endswith("(core/hash_chain_cache.py HashChainCache.lookup)")
    assert [account.place for account in told.accounts] == sorted(account.place for account in told.accounts)


def test_a_block_explained():
    timeline = Timeline.record(find_scenario("tail-first"))
    last = explain_block(timeline, 4)
    assert "evicted: x needed blocks" in " ".join(last.lines())
    assert explain_block(timeline, 3, 30).summary == (
        'Block b3 is cached: no request uses it, but a lookup finds tokens 0 to 3 of b, "cccc", in it under hash '
        "f3e21b0a…. It is number 5 of 7 in the free queue."
    ).replace("f3e21b0a", timeline.at(30).hashes[3].hex()[:8])
    assert explain_block(timeline, 0).summary.startswith("Block b0 is the null block")
    place = timeline.next(-1, "BlocksAllocated")
    assert explain_block(timeline, 1, place).summary == "Block b1 is in use by a, and a lookup finds nothing in it."
    radix = Timeline.record(find_scenario("radix-split-and-prune"))
    place = radix.next(radix.next(-1, "RequestFinished"), "StepFinished")
    assert explain_block(radix, 1, place).summary == (
        'Block b1 is cached: no request uses it, but a lookup finds token 0 of first, "T", in it. It is freed when '
        "node 1 of the tree is evicted."
    )


def test_an_event_explained():
    timeline = Timeline.record(find_scenario("two-equal-prompts"), "radix")
    told = explain_event(timeline, timeline.next(-1, "BlockTableRewritten"))
    assert told.accounts[0].rule.otherwise == "Without this the table would name freed blocks: a use after free."
    assert told.to_json()["accounts"][0]["decided_by"] == "core/radix_cache.py RadixCache.publish"


def test_what_is_not_there_cannot_be_explained():
    timeline = Timeline.record(find_scenario("tail-first"))
    with pytest.raises(UnknownThing, match="no request 'b-latr': did you mean 'b-later'"):
        explain_request(timeline, "b-latr")
    with pytest.raises(UnknownThing, match="there is no block b8: this pool has b0 to b7"):
        explain_block(timeline, 8)
    with pytest.raises(UnknownThing, match="there is no event -1"):
        explain_event(timeline, -1)


@pytest.mark.parametrize(
    ("name", "kind", "event", "nth", "otherwise"),
    [
        (
            "preempt-and-resume",
            "hash",
            "AdmissionFailed",
            0,
            "With 1 block more available it would have been admitted. Blocks that it found would need no free "
            "blocks if a running request used them.",
        ),
        (
            "preempt-and-resume",
            "hash",
            "BlocksEvicted",
            0,
            "With 1 block more in the pool, or if a request had used it in the meantime, it would have stayed.",
        ),
        (
            "two-equal-prompts",
            "hash",
            "RequestArrived",
            0,
            "At its longest it needs 3 blocks of the pool's 16: with fewer than 3 it would have been refused.",
        ),
        (
            "two-equal-prompts",
            "hash",
            "RequestAdmitted",
            1,
            "Without the hit, 40 of its tokens would have been computed instead of 8.",
        ),
        (
            "chunked-prefill",
            "hash",
            "RequestAdmitted",
            1,
            "With 237 tokens more for it in this step all of it would have been computed at once.",
        ),
        ("chain-flip", "hash", "RequestFinished", 0, "With a max_tokens above 1 it would have gone on."),
        (
            "radix-split-and-prune",
            "radix",
            "BlocksReleased",
            0,
            "Blocks that were never published would have gone back to the free queue, and their KV would have been "
            "lost.",
        ),
    ],
)
def test_what_would_have_made_it_different(name, kind, event, nth, otherwise):
    lines = list(Narrator(Timeline.record(find_scenario(name), kind)).lines())
    assert [line.rule.otherwise for line in lines if type(line.event).__name__ == event][nth] == otherwise


def test_needed_blocks_are_those_that_the_scheduler_asks_for():
    """What an explanation promises is so: with that many blocks it runs, with one fewer it is refused."""
    timeline = Timeline.record(find_scenario("two-equal-prompts"), "hash")
    needed = int(re.search(r"fewer than (\d+)", Narrator(timeline).line(0).rule.otherwise)[1])
    find_scenario("two-equal-prompts", [f"num_blocks={needed + 1}"]).require_fit("hash")
    with pytest.raises(BadScenario, match="can never fit"):
        find_scenario("two-equal-prompts", [f"num_blocks={needed}"])


def test_a_long_wait_is_told_in_short():
    told = explain_request(Timeline.record(find_scenario("preempt-and-resume"), "hash"), "second")
    waits = [account.sentence for account in told.accounts if "does not fit" in account.sentence]
    assert [re.search(r"needs (\d+) blocks and (\d+)", words).groups() for words in waits] == [
        ("4", "3"),
        ("4", "2"),
        ("4", "1"),
    ]
    assert "was preempted once" in told.summary


def test_a_block_of_another_pool_is_another_block():
    timeline = Timeline.record(find_scenario("preempt-and-resume"), "hash")
    fork = timeline.fork(timeline.place_of_step(4), SetBlockSize(2))
    place = fork.next(-1, "PoolReplaced")
    told = explain_block(fork, 16)
    assert told.accounts
    assert min(account.place for account in explain_block(fork, 3).accounts) >= place
    assert explain_block(fork, 3, place - 1).accounts[0].place < place
    with pytest.raises(UnknownThing, match="no block b16: this pool has b0 to b8"):
        explain_block(fork, 16, place - 1)
    shrunk = timeline.fork(timeline.place_of_step(4), ShrinkPool(1))
    taken = shrunk.next(-1, "PoolShrunk")
    assert explain_event(shrunk, taken).accounts[-1].rule.name == "a pool with fewer blocks"
    [block] = shrunk.events[taken].blocks
    assert explain_block(shrunk, block).summary == f"Block b{block} was taken out of the pool: no request can get it."


def of_two_equal_requests(lose, prompt=b"abcdefgh!", block_size=4):
    """The line of the second request's lookup; `lose(cache)` is called after the first."""
    events = EventStream()
    cache = HashChainCache(99, block_size, events=events)
    timeline = Timeline(99, block_size)
    events.sinks.append(timeline)
    scheduler = Scheduler(cache, events=events)
    for id in ("before", "after"):
        scheduler.add(Request(id, list(prompt), 1))
        plan = scheduler.schedule()
        scheduler.update(plan, {id: 1})
        lose(cache)
    [line] = [line for line in Narrator(timeline).lines() if line.words.startswith("after looks up")]
    return line


@pytest.mark.parametrize(
    ("lose", "why", "without"),
    [
        (HashChainCache.reset, "the cache was reset", "the reset of the cache"),
        (lambda cache: cache.evict(9), "the pool was made smaller, or evict() was called", "this eviction"),
    ],
    ids=["reset", "evict"],
)
def test_the_rule_of_a_lost_block_names_what_took_it(lose, why, without):
    line = of_two_equal_requests(lose)
    assert line.words.endswith(f"Its block 0 was in the cache until step 1: {why}.")
    assert line.rule.name == "lost KV is computed again"
    assert line.rule.otherwise == f"Without {without} it would still have been there."


def test_no_change_would_make_a_lookup_find_the_last_token():
    line = of_two_equal_requests(lambda cache: None, block_size=1)
    assert line.rule.otherwise == "No change would help: a lookup never finds the last token of a request."


def test_every_way_to_lose_a_block_has_a_rule_that_names_it():
    for cause in get_args(LossCause):
        finding = Explanation("late", "evicted", loss=Loss(3, cause, "other" if cause == "needed" else None))
        for kind in (False, True):
            name, otherwise = LOOKUPS[_reason(finding, kind, single=False)]
            assert "that event" not in otherwise
            assert (name == "lost KV is computed again") == (cause != "needed")
