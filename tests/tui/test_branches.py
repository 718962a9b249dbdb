"""The chain and the tree on the screen: the cursor stays on its row, and what was pruned is seen to go."""

import re

import pytest
from textual.pilot import Pilot

from minicache.core import events as ev
from minicache_tui.panels.line import ascii_only
from minicache_tui.signs import ASCII, Sign
from tests.thinned import thinned

from .panels_app import PanelsApp, drive, player_of


def test_the_cursor_stays_on_its_row_when_others_come_and_go() -> None:
    app = PanelsApp(player_of("radix-split-and-prune"))

    async def play(pilot: Pilot[None]) -> None:
        player, panel = app.player, app.panel("chain")
        player.next_of("BlocksPublished")
        app.main.sync()
        panel.focus()
        chosen = panel.under_cursor()
        player.next_of("NodeSplit")  # a node comes above it
        app.main.sync()
        assert panel.under_cursor() == chosen
        assert panel.line(panel.cursor + 1).text.strip("├└│ ").startswith(f"n{chosen.id} ")
        assert panel.cursor == 1

    drive(app, (160, 48), play)


@pytest.mark.parametrize("name", thinned(["radix-split-and-prune", "sglang-article", "timestamp-user-turn"]))
def test_in_ascii_no_branch_looks_like_a_wall_of_the_ribbon_or_like_a_sign(name: str) -> None:
    app = PanelsApp(player_of(name), ascii=True)

    async def play(pilot: Pilot[None]) -> None:
        panel, deepest = app.panel("chain"), 0
        for _ in range(60):
            app.player.step()
            app.main.sync()
            await pilot.pause()
            for line in app.text_of("chain")[1:]:
                branches = re.match(r"[^\w~]*", line)
                assert branches is not None
                assert set(branches[0]) <= set(" :`")
                deepest = max(deepest, len(branches[0]))
        assert deepest >= 4
        assert ascii_only("│") not in ":`"
        assert not {ASCII[sign] for sign in Sign} & set(":`")
        assert panel.ascii

    drive(app, (160, 48), play)


def test_the_found_blocks_of_a_lookup_are_marked_in_the_pool_and_in_the_chain() -> None:
    """Where nothing is selected; and only as long as the lookup is the current event."""
    for name in ("tail-first", "timestamp-end", "radix-split-and-prune"):
        app = PanelsApp(player_of(name))

        async def play(pilot: Pilot[None], app: PanelsApp = app) -> None:
            player, marked = app.player, 0
            while player.step():
                event = player.current
                if not isinstance(event, ev.PrefixMatched):
                    assert not player.chosen_blocks()
                    continue
                found = player.chosen_blocks()
                assert len(found) * player.view.block_size == event.num_tokens
                app.main.sync()
                await pilot.pause()
                rows = player.tree().rows if player.timeline.kind == "radix" else player.chain().rows
                chain = app.panel("chain")
                for number, row in enumerate(rows):
                    styles = " ".join(style for _, style in chain.line(number + 1))
                    assert ("chosen" in styles) == (not found.isdisjoint(row.blocks))
                if found:
                    marked += 1
                    pool = app.panel("pool")
                    styles = [style for y in range(pool.count()) for text, style in pool.line(y) if text.strip()]
                    assert any("chosen" in style or style == "focus" for style in styles)
                    adopted = player.timeline.next(player.place, "BlocksAdopted")
                    last = player.timeline.events[adopted].blocks[-1]
                    assert any(last in row.blocks for row in rows), "where the chain stops is never folded"
            assert marked >= 2

        drive(app, (160, 48), play)


def test_what_was_pruned_is_crossed_out_first_and_what_is_new_grows_then() -> None:
    app = PanelsApp(player_of("radix-split-and-prune"))

    async def play(pilot: Pilot[None]) -> None:
        player, panel = app.player, app.panel("chain")
        player.seek(player.timeline.next(-1, "NodesEvicted") - 1)
        app.main.sync()
        await pilot.pause()
        before = [panel.line(y).text for y in range(panel.count())]
        player.next_event()
        event = player.current
        assert isinstance(event, ev.NodesEvicted)
        gone = tuple(f"n{node} " for node in event.nodes)
        app.main.sync()
        assert panel.in_motion
        panel.moving = 0.2
        crossed = [panel.line(y) for y in range(len(before))]
        assert [line.text.strip("├└│ ").startswith(gone) for line in crossed].count(True) == len(gone)
        assert sum("evicted" in style for line in crossed for _, style in line) >= len(gone)
        panel.moving = 1.0
        assert not any(panel.line(y).text.strip("├└│ ").startswith(gone) for y in range(panel.count()))

    drive(app, (160, 48), play)
