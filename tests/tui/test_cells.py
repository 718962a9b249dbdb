"""The cell of a block against a naive account of it, written from the legend."""

from collections import Counter

import pytest

from minicache.core.views import EngineView
from minicache_tui.player import Player
from minicache_tui.signs import ASCII, MEANINGS, UNICODE, Sign

from .player_runs import TIMELINES, cells_of

PLAIN = [name for name, timeline in TIMELINES.items() if timeline.next(-1, "PoolReplaced") is None]


def naive_cells(timeline):
    """After each event: what each block is, from the state; what is new, from the events of the step, one by one."""
    view = EngineView(timeline.settings["num_blocks"], timeline.settings["block_size"])
    news = {}
    for event in timeline.events:
        kind = type(event).__name__
        holders = Counter(block for table in view.tables.values() for block in table)
        match kind:
            case "StepStarted":
                news = {}
            case "BlocksAdopted":
                news |= dict.fromkeys(event.blocks, Sign.HIT)
            case "BlocksEvicted" | "NodesEvicted":
                news |= dict.fromkeys(event.blocks, Sign.EVICTED)
            case "BlocksAllocated":
                news = {b: sign for b, sign in news.items() if b not in event.blocks or sign is Sign.EVICTED}
            case "TokensComputed":
                prompt = view.requests[event.request].num_prompt_tokens
                for position in range(event.start, event.start + event.num_tokens):
                    block = view.tables[event.request][position // view.block_size]
                    if position < prompt:
                        news[block] = Sign.COMPUTED
                    elif event.start >= prompt or position // view.block_size > (prompt - 1) // view.block_size:
                        news[block] = Sign.GENERATED
            case "BlocksReleased":
                preempted = event.request in view.requests and view.requests[event.request].status == "preempted"
                for block in event.blocks:
                    if holders[block] == 1:
                        news.pop(block, None)
                        if preempted:
                            news[block] = Sign.PREEMPTED
            case "DuplicatesFreed":
                for block in event.blocks:
                    news.pop(block, None)
        view.apply(event)
        yield list(_cells(view, news))


def _cells(view, news):
    findable = set(view.hashes).union(*(node.blocks for node in view.nodes.values()))
    held = Counter(block for table in view.tables.values() for block in table)
    for block in range(view.num_blocks):
        holders = 0 if block in view.free else held[block]
        plain = [Sign.FINDABLE if block in findable else Sign.EMPTY, Sign.USED, Sign.SHARED][min(holders, 2)]
        never = not block or block in view.removed
        yield (Sign.NULL if never else news.get(block, plain), holders)


@pytest.mark.parametrize("name", PLAIN)
def test_cells_are_as_in_the_legend(name):
    timeline = TIMELINES[name]
    player = Player(timeline)
    for place, expected in enumerate(naive_cells(timeline)):
        player.seek(place)
        assert cells_of(player) == expected, f"event {place}"


@pytest.mark.parametrize("name", TIMELINES)
def test_the_counts_are_those_of_a_recount(name):
    player = Player(TIMELINES[name])
    while player.next_event():
        view = player.view
        held = {block for table in view.tables.values() for block in table} - set(view.free)
        findable = set(view.hashes).union(*(node.blocks for node in view.nodes.values())) - held
        assert player.cells.counts() == (len(held), len(findable), view.capacity - len(held) - len(findable))


def test_every_sign_has_a_glyph_of_its_own_and_a_meaning():
    for glyphs in (UNICODE, ASCII):
        assert len({glyphs[sign] for sign in Sign}) == len(Sign)
        assert all(len(glyphs[sign]) == 1 for sign in Sign)
    assert all(ASCII[sign].isascii() for sign in Sign)
    assert set(MEANINGS) == set(Sign)
    assert (UNICODE.mark(Sign.SHARED, 12), ASCII.mark(Sign.SHARED, 3), UNICODE.mark(Sign.USED, 1)) == ("◉12", "3", "●")


def test_every_sign_is_seen_somewhere():
    seen = set()
    for timeline in TIMELINES.values():
        player = Player(timeline)
        while player.next_event():
            seen.update(player.cells.codes)
    assert seen == set(range(len(Sign)))
