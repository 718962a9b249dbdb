"""The chain and the tree on the screen: the cursor stays on its row, and what was pruned is seen to go."""

from textual.pilot import Pilot

from minicache.core import events as ev

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
