"""Belt, trees, strip, meters and the search against caches and naive accounts."""

from collections import Counter
from dataclasses import replace
from itertools import accumulate, groupby, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicache.core import events as ev
from minicache.core.eviction import STRATEGIES
from minicache.core.hit_rate import DEFINITIONS, Lookup
from minicache.core.request import Request
from minicache.core.views import EngineView
from minicache.sim.library import find_scenario
from minicache.sim.simulator import Simulator
from minicache.sim.timeline import Timeline
from minicache_tui.model.belt import FEW, QueueBelt
from minicache_tui.model.chain import Chain
from minicache_tui.model.lru import Lru
from minicache_tui.model.rows import Selection
from minicache_tui.player import Player
from minicache_tui.signs import Sign

from .player_runs import TIMELINES, player_at

ALL = pytest.mark.parametrize("timeline", TIMELINES.values(), ids=list(TIMELINES))


def run_of_steps(name, kind, steps, strategy="lru"):
    """The simulator after so many steps, and the timeline it told."""
    scenario = find_scenario(name)
    scenario = replace(scenario, caches=scenario.caches | {kind: replace(scenario.caches[kind], strategy=strategy)})
    timeline = Timeline.for_scenario(scenario, kind)
    sim = Simulator.of(scenario, kind, timeline)
    for _ in range(steps):
        sim.step()
    return sim, timeline


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("steps", range(1, 6))
def test_the_belt_of_a_tree_is_the_order_in_which_it_evicts(strategy, steps):
    for name in ("radix-split-and-prune", "sglang-article"):
        sim, timeline = run_of_steps(name, "radix", steps, strategy)
        player = player_at(timeline, len(timeline) - 1)
        nodes = [item.selection.id for item in player.belt() if item.selection.kind == "node"]
        evicted = []
        while sim.cache.evict(1):  # one call each, so that the strategy decides anew every time
            evicted += timeline.events[-1].nodes
        assert nodes == evicted


def test_a_node_becomes_a_leaf_later_on_the_belt():
    player = Player(TIMELINES["radix-split-and-prune, radix"])
    player.go_to_request("fourth")
    items = [item for item in player.belt() if item.selection.kind == "node"]
    parents = {player.view.nodes[id].parent for id in player.view.nodes}
    assert {item.later for item in items} == {False, True}
    assert all(item.later == (item.selection.id in parents) for item in items)


def first_blocks(belt, free):
    """The first block of each item, if all items together are the free queue."""
    starts = list(accumulate((item.num_blocks for item in belt), initial=0))
    assert starts.pop() == len(free)
    return [free[start] for start in starts]


@pytest.mark.parametrize("steps", range(1, 6))
def test_the_belt_of_a_free_queue_is_the_order_in_which_blocks_are_handed_out(steps):
    sim, timeline = run_of_steps("tail-first", "hash", steps)
    player = player_at(timeline, len(timeline) - 1)
    belt = list(player.belt())
    blocks = list(player.view.free)
    assert first_blocks(belt, blocks) == [item.selection.id for item in belt]
    findable = {item.selection.id for item in belt if item.sign is Sign.FINDABLE}
    taker = Request("taker", [0], 1)
    assert sim.cache.allocate(taker, None, len(blocks) * sim.cache.block_size)
    assert list(taker.block_table) == blocks
    evicted = timeline.previous(len(timeline), "BlocksEvicted")
    assert set(timeline.events[evicted].blocks) == findable


def test_many_empty_blocks_are_one_item():
    player = player_at(Timeline.record(find_scenario("timestamp-top")), 30)
    belt = list(islice(player.belt(), 20))
    many = next(item for item in belt if item.num_blocks > 1)
    assert (many.sign, many.label) == (Sign.EMPTY, f"×{many.num_blocks}")
    assert many.num_blocks == player.cells.counts().empty
    assert any(item.sign is Sign.FINDABLE for item in belt)


@ALL
def test_every_findable_block_stands_once_in_the_chain_below_its_parent(timeline):
    player = Player(timeline)
    if timeline.kind == "radix":
        return
    while player.step():
        rows = player.chain().rows
        blocks = [block for row in rows for block in row.blocks]
        assert len(blocks) + sum(row.folded for row in rows) == len(player.view.hashes)
        assert len(set(blocks)) == len(blocks)
        assert len({row.key for row in rows}) == len(rows)
        above = {}
        for row in rows:
            above[row.depth] = row
            assert row.depth == len(row.branches)
            if len(row.blocks) == 1:
                assert (row.sign, row.sharers) == (player.cells[row.blocks[0]], player.cells.sharers(row.blocks[0]))
            if not row.folded:
                parent = player.index.hashes[row.key].parent
                assert row.orphan == (parent is not None and parent not in player.view.copies)
            if row.folded or row.depth == 1:
                continue
            parent = above[row.depth - 1]
            if not parent.folded and not row.orphan:
                assert player.index.hashes[row.key].parent == parent.key


def test_a_long_run_without_a_branch_is_folded_and_shows_what_is_chosen():
    player = player_at(Timeline.record(find_scenario("timestamp-top")), 30)
    rows = player.chain().rows
    assert [row.folded for row in rows] == [0, 0, 39, 0, 0, 0, 39, 0]
    player.select(Selection("block", 20))
    assert any(row.blocks == (20,) for row in player.chain().rows)


def test_a_block_whose_parent_is_lost_hangs_on_nothing_and_says_so():
    """Eviction takes tails first, so this is told only by logs of engines that do otherwise."""
    player = player_at(Timeline.record(find_scenario("two-equal-prompts"), "hash"), 25)
    view = player.view
    del view.copies[view.hashes.pop(1)]
    (row,) = player.chain().rows
    assert (row.blocks, row.depth, row.orphan) == ((2,), 1, True)


def test_two_prompts_that_part_are_two_branches():
    player = Player(Timeline.record(find_scenario("two-equal-prompts"), "hash"))
    player.end()
    assert [row.branches for row in player.chain().rows] == [(False,), (False, False)]
    player = Player(Timeline.record(find_scenario("timestamp-top")))
    player.seek(30)
    tops = [row for row in player.chain().rows if row.depth == 1]
    assert [row.branches for row in tops] == [(True,), (False,)]
    assert [row.text for row in tops] == ["It is 14:03:21. ", "It is 14:03:22. "]


@ALL
def test_the_tree_has_a_row_for_every_node_below_its_parent(timeline):
    if timeline.kind != "radix":
        return
    player = Player(timeline)
    while player.step():
        above = {0: 0}
        seen = []
        for row in player.tree().rows:
            above[row.depth] = row.key
            node = player.view.nodes[row.key]
            assert node.parent == above[row.depth - 1]
            assert (row.blocks, row.sharers, row.locked) == (node.blocks, node.locks, node.locks > 0)
            seen.append(row.key)
        assert sorted(seen) == sorted(player.view.nodes)


@ALL
def test_the_cells_of_the_strip_cover_every_event_once(timeline):
    player = Player(timeline)
    for width in (1, 7, 40, len(timeline), 500):
        for place in (-1, 0, len(timeline) // 2, len(timeline) - 1):
            player.seek(place)
            cells = player.strip(width)
            assert len(cells) == min(width, len(timeline))
            assert [p for cell in cells for p in range(cell.first, cell.last + 1)] == list(range(len(timeline)))
            here = [cell for cell in cells if cell.contains_place]
            assert [cell.first <= place <= cell.last for cell in here] == ([True] if place >= 0 else [])


def test_no_eviction_and_no_preemption_is_lost_in_a_narrow_strip():
    for name, kind in (("thrashing, hash", ev.BlocksEvicted), ("preempt-and-resume, hash", ev.RequestPreempted)):
        timeline = TIMELINES[name]
        cells = Player(timeline).strip(12)
        for place, event in enumerate(timeline.events):
            if isinstance(event, kind):
                cell = next(cell for cell in cells if cell.first <= place <= cell.last)
                assert cell.kind in ("evicted", "preempted")


@ALL
def test_meters_are_those_of_a_recount(timeline):
    player = Player(timeline)
    lookups = []
    computed = 0
    for place, event in enumerate(timeline.events):
        player.seek(place)
        computed = 0 if isinstance(event, ev.StepStarted) else computed
        if isinstance(event, ev.TokensComputed):
            computed += event.num_tokens
        if isinstance(event, ev.RequestAdmitted) and not event.resumed:
            request = player.view.requests[event.request]
            lookups.append(Lookup(request.num_prompt_tokens, event.num_cached_tokens))
        rate, pool, waiting, now = player.meters()
        if lookups:
            assert rate.value == f"{100 * DEFINITIONS['tokens of all'](lookups):.1f} % of tokens"
        held = {b for table in player.view.tables.values() for b in table} - set(player.view.free)
        assert pool.value == f"{100 * len(held) / (player.view.capacity):.0f} %"
        assert waiting.value == str(len(player.view.waiting))
        assert now.value == f"{computed:,} in this step"
        for meter in (rate, pool, waiting, now):
            assert all(0 <= value <= 1 for value in meter.history)
            assert meter.definition.endswith(".")
        if isinstance(event, ev.StepFinished) and timeline.next(-1, "PoolReplaced") is None:
            assert pool.history[-1] == len(held) / (player.view.capacity)
            last = player.index.waiting[: player.index.steps_until(place)][-32:]
            assert waiting.history[-1] == len(player.view.waiting) / max(1, *last)
    assert any("looked-up" in meter.definition for meter in player.meters())


def test_request_rows_say_how_each_stands():
    player = Player(TIMELINES["preempt-and-resume, hash"])
    seen = set()
    while player.next_event():
        rows = player.requests()
        assert [row.id for row in rows[: len(player.view.running)]] == player.view.running
        seen.update((row.id, row.state) for row in rows)
    states = {"waiting", "prefill", "decode", "done"}
    assert {state for id, state in seen if id == "first"} == states
    assert {state for id, state in seen if id == "second"} == states | {"preempted"}
    assert [row.preemptions for row in player.requests()] == [1, 0]


def test_things_are_found_by_what_a_person_remembers():
    player = player_at(Timeline.record(find_scenario("timestamp-top")), 30)
    hash = player.view.hashes[43].hex()
    assert player.find("43")[0].selection == Selection("block", 43)
    assert player.find(hash[:6])[0].selection == Selection("block", 43)
    assert player.find("user2")[0].selection == Selection("request", "user2")
    assert player.find("user2")[0].place is None, "it is here"
    assert Player(player.timeline).find("user2")[0].place == 24
    assert "14:03:22" in player.find("14:03:22. you")[0].label
    assert player.find("nobody wrote this") == player.find("  ") == []
    names = [found.selection.id for found in Player(TIMELINES["two texts"]).find("b")]
    assert names == ["b", "ab"]
    tree = Player(TIMELINES["radix-split-and-prune, radix"])
    tree.go_to_request("fourth")
    assert tree.find("node 3")[0].selection == Selection("node", 3)


@given(
    runs=st.lists(st.tuples(st.booleans(), st.integers(1, 12)), min_size=1, max_size=8),
    held=st.integers(0, 3),
)
def test_the_belt_of_a_free_queue_is_it_in_whatever_order_empty_blocks_stand(runs, held):
    findable = [found for found, count in runs for _ in range(count)]
    view = EngineView(len(findable) + held + 1, 16)
    for block, found in enumerate(findable, 1):
        if found:
            view.hashes[block] = bytes([block])
            view.copies[bytes([block])] = {block: None}
    view.tables["r"] = list(range(len(findable) + 1, view.num_blocks))
    for block in view.tables["r"]:
        view.free.remove(block)
    whole = list(QueueBelt(bytes.hex).items(view, Lru(view, view.free)))
    free = list(view.free)
    assert first_blocks(whole, free) == [item.selection.id for item in whole]
    for item in whole:
        at = free.index(item.selection.id)
        assert {findable[block - 1] for block in free[at : at + item.num_blocks]} == {item.sign is Sign.FINDABLE}
    in_a_row = [len(list(run)) for sign, run in groupby(whole, key=lambda item: item.sign) if sign is Sign.EMPTY]
    assert all(count <= FEW for count in in_a_row)


def test_a_block_whose_parent_comes_and_goes_hangs_on_it_while_it_is_there():
    """As in the log of an engine that evicts the beginning of a prompt before its end."""
    player = player_at(Timeline.record(find_scenario("timestamp-top")), 30)
    view, first = player.view, player.chain().rows[0].key
    chain = Chain(player.timeline, player.index, player.texts)

    def rows_after(touched):
        chain.update(touched, view)
        fresh = Chain(player.timeline, player.index, player.texts)
        fresh.update(None, view)
        kept, new = (list(c.model(range(0), view, player.cells, ()).rows) for c in (chain, fresh))
        assert kept == new
        return kept

    before = rows_after(None)
    (block,) = copies = view.copies.pop(first)
    view.hashes.pop(block)
    orphaned = rows_after({first})
    assert [row.key for row in orphaned if row.orphan] == [before[1].key]
    view.copies[first], view.hashes[block] = copies, first
    assert [row.key for row in rows_after({first})] == [row.key for row in before]


def test_the_summary_of_a_growing_run_is_that_of_the_whole():
    whole = Timeline.record(find_scenario("timestamp-top"), "hash")
    growing = Timeline(whole.settings["num_blocks"], whole.settings["block_size"], whole.settings)
    player = Player(growing)
    for event in whole.events:
        growing.add(event)
        assert player.index.totals["events"] == len(growing)
    assert player.index.to_json() == whole.index.to_json()


@ALL
def test_what_was_found_and_what_was_computed_for_requests_is_what_the_closing_words_add_up(timeline):
    """A prompt is found once, when it is first admitted; what is lost and computed again was computed twice."""
    player, computed, hit, found = Player(timeline), Counter(), {}, {}
    while player.next_event():
        match event := player.current:
            case ev.RequestAdmitted():
                found[event.request] = event.num_cached_tokens
                hit.setdefault(event.request, event.num_cached_tokens)
            case ev.RequestPreempted():
                found[event.request] = 0
            case ev.TokensComputed():
                computed[event.request] += event.num_tokens
            case _:
                continue
        for row in player.requests():
            assert (row.hit, row.computed, row.found) == (hit.get(row.id), computed[row.id], found.get(row.id, 0))
            known = player.view.requests.get(row.id) or player.view.ended.get(row.id)
            assert row.has_kv == (known.num_computed_tokens if known else 0)
            assert (row.hit or 0) <= row.prompt
    assert sum(row.computed for row in player.requests()) == player.index.totals["computed_tokens"]


@ALL
def test_a_block_says_what_it_holds_as_long_as_anybody_knows(timeline):
    player = Player(timeline)
    while player.step():
        view = player.view
        found = {*view.hashes, *(block for node in view.nodes.values() for block in node.blocks)}
        size = view.block_size
        for request, known in view.requests.items():
            table = view.tables.get(request, ())
            found.update(block for index, block in enumerate(table) if index * size < len(known.tokens))
        said = {block for block in range(view.num_blocks) if player.block_text(block)}
        assert said == found


def test_a_block_says_the_text_of_its_tokens():
    player = Player(Timeline.record(find_scenario("tail-first")))
    player.end()
    texts = {player.block_text(block) for block in player.view.hashes}
    assert texts == {"aaaa", "bbbb", "cccc", "dddd", "eeee", "ffff"}
