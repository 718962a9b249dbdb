"""Keys and mouse in the panels: what they select, where they go, and what stays as it is."""

import pytest
from textual.pilot import Pilot
from textual.strip import Strip

from minicache.sim.scenario_file import read_scenario
from minicache.sim.timeline import Timeline
from minicache_tui.motion import FRAMES_PER_SECOND, SECONDS
from minicache_tui.panels.pool import Pool
from minicache_tui.panels.ribbon import Ribbon
from minicache_tui.player import NOTHING, Player, Selection
from minicache_tui.signs import UNICODE, Sign
from tests.tui.panels_app import PanelsApp, drive, player_of

BIG = """
title = "A pool of ten thousand blocks"
story = "More blocks than fit."
[cache]
kind = "hash"
num_blocks = 10000
[[request]]
id = "r1"
prompt = [{ segment = "book", tokens = 1600 }]
max_tokens = 2
"""


def big_pool() -> Player:
    player = Player(Timeline.record(read_scenario(BIG, "big", "big.toml", {})))
    player.next_of("TokensComputed")
    return player


def test_arrows_move_the_cursor_of_a_focused_panel_and_enter_explains() -> None:
    app = PanelsApp(player_of("tail-first", 30))

    async def play(pilot: Pilot[None]) -> None:
        place = app.player.place
        pool = app.panel("pool")
        pool.focus()
        await pilot.pause()
        assert isinstance(pool, Pool)
        pool.cursor = 1
        await pilot.press("down", "down", "enter")
        assert app.player.selection == Selection("block", 3)
        assert app.player.place == place
        await pilot.pause()
        assert "block b3" in "\n".join(app.shown())
        assert "[" in app.text_of("pool")[3]
        await pilot.press("n")
        assert app.player.place > place

    drive(app, (120, 36), play)


def test_where_a_cursor_goes_up_and_down_only_right_still_steps() -> None:
    app = PanelsApp(player_of("tail-first"))

    async def play(pilot: Pilot[None]) -> None:
        app.panel("requests").focus()
        await pilot.press("right")
        assert app.player.place >= 0

    drive(app, (120, 36), play)


def test_a_click_selects_a_block_a_row_of_the_tree_and_a_request() -> None:
    app = PanelsApp(player_of("radix-split-and-prune", 36))

    async def play(pilot: Pilot[None]) -> None:
        for id, offset, selection in (
            ("requests", (4, 2), Selection("request", app.player.requests()[0].id)),
            ("chain", (4, 3), app.player.tree().rows[1].selection),
            ("pool", (9, 1), Selection("block", 1)),
        ):
            if id == "pool":
                pool = app.panel("pool")
                assert isinstance(pool, Pool)
                offset = (2 + pool._grid.x_of(1), 1)
            await pilot.click(f"#{id}", offset=offset)
            await pilot.pause()
            assert app.player.selection == selection, id

    drive(app, (160, 48), play)


def test_a_click_on_the_strip_goes_there_and_dragging_goes_on() -> None:
    app = PanelsApp(player_of("tail-first"))

    async def play(pilot: Pilot[None]) -> None:
        places = []
        for x in (20, 60, 110):
            await pilot.click("#strip", offset=(x, 0))
            await pilot.pause()
            places.append(app.player.place)
            assert "\x1b" not in "".join(app.shown())
        assert places == sorted(set(places))
        share = places[1] / len(app.player.timeline)
        assert abs(share - 59 / 118) < 0.03
        await pilot.mouse_down("#strip", offset=(10, 0))
        await pilot.hover("#strip", offset=(90, 0))
        await pilot.mouse_up("#strip", offset=(90, 0))
        await pilot.pause()
        assert places[1] < app.player.place < places[2]

    drive(app, (120, 36), play)


def test_ten_thousand_blocks_are_an_overview_and_a_zoom_goes_to_single_blocks_and_back() -> None:
    app = PanelsApp(big_pool())

    async def play(pilot: Pilot[None]) -> None:
        overview = app.text_of("pool")
        assert "1 cell = 64 blocks" in "\n".join(app.shown())
        assert overview[0].split()[:4] == ["0", "▲", "▲▅·", "·"]  # 63 of 63 blocks, 37 of 64, none
        pool = app.panel("pool")
        assert isinstance(pool, Pool)
        pool.focus()
        pool.action_zoom()
        await pilot.pause()
        blocks = app.text_of("pool")
        assert blocks[0].split()[:3] == ["0", UNICODE[Sign.NULL], UNICODE[Sign.COMPUTED]]
        assert "z: overview" in "\n".join(app.shown())
        await pilot.press("down", "down", "down", "down", "down", "down", "down", "down", "down", "down")
        await pilot.pause()
        assert app.panel("pool").scroll_offset.y > 0
        pool.action_zoom()
        await pilot.pause()
        assert app.text_of("pool") == overview

    drive(app, (80, 24), play)


def test_an_overview_shows_the_only_block_that_was_evicted() -> None:
    app = PanelsApp(big_pool())

    async def play(pilot: Pilot[None]) -> None:
        pool = app.panel("pool")
        assert isinstance(pool, Pool)
        codes = bytearray(app.player.cells.codes)
        from minicache_tui.cells import CODE

        codes[777] = CODE[Sign.EVICTED]
        pool._shown = codes
        assert pool.dominant(range(768, 832))[0] is Sign.EVICTED
        assert pool.dominant(range(832, 896)) == (Sign.EMPTY, 0.0)
        assert pool.dominant(range(64))[0] is Sign.COMPUTED

    drive(app, (80, 24), play)


def test_the_cursor_of_the_ribbon_opens_the_fold() -> None:
    app = PanelsApp(player_of("timestamp-top", 12))

    async def play(pilot: Pilot[None]) -> None:
        ribbon = app.panel("ribbon")
        assert isinstance(ribbon, Ribbon)
        ribbon.focus()
        await pilot.press("down", *["right"] * 9)
        await pilot.pause()
        assert ribbon._layout is not None
        assert ribbon.cursor in [place.piece for place in ribbon._layout.places]
        await pilot.press("enter")
        await pilot.pause()
        model = app.player.ribbon()
        assert model is not None
        assert ribbon.cursor is not None
        assert app.player.selection == model.blocks[ribbon.cursor].selection

    drive(app, (120, 36), play)


def test_a_selection_that_is_not_there_is_a_sentence() -> None:
    app = PanelsApp(player_of("radix-split-and-prune", 40))

    async def play(pilot: Pilot[None]) -> None:
        app.player.select(Selection("node", 99))
        app.main.sync()
        words = " ".join(app.text_of("explain"))
        assert "99" in words
        app.player.select(NOTHING)
        app.main.sync()
        assert "99" not in " ".join(app.text_of("explain"))

    drive(app, (120, 36), play)


def test_a_step_moves_for_less_than_a_third_of_a_second_and_a_step_more_skips_to_the_end() -> None:
    assert SECONDS <= 0.3
    app = PanelsApp(player_of("timestamp-top"), animation="full")

    async def play(pilot: Pilot[None]) -> None:
        motion = app.main.motion
        while Sign.COMPUTED not in {app.player.cells[block] for block in range(8)}:
            app.player.step()
        app.main.sync()
        app.player.seek(app.player.beat.start - 1)
        app.main.sync()
        before = app.text_of("pool")
        app.player.step()
        app.main.sync()
        assert motion.progress == 0
        assert app.text_of("pool")[0] == before[0]
        halfway = round(SECONDS * FRAMES_PER_SECOND) // 2
        for _ in range(halfway):
            motion.tick()
        assert 0 < motion.progress < 1
        between = "".join(app.text_of("pool"))
        for _ in range(halfway + 1):
            motion.tick()
        assert motion.resting
        after = "".join(app.text_of("pool"))
        assert 0 < between.count("▲") < after.count("▲")
        app.player.step()
        app.main.sync()
        app.player.back()
        app.main.sync()
        assert motion.resting

    drive(app, (160, 48), play)


@pytest.mark.parametrize("name", ["tail-first", "radix-split-and-prune", "preempt-and-resume"])
def test_every_frame_of_every_step_can_be_drawn_and_ends_where_there_is_no_motion(name: str) -> None:
    app = PanelsApp(player_of(name), animation="full")

    async def play(pilot: Pilot[None]) -> None:
        panels = list(app.main.query("Panel"))
        while app.player.step():
            app.main.sync()
            while not app.main.motion.resting:
                app.main.motion.tick()
            moved = [[panel.line(y) for y in range(panel.count())] for panel in panels if panel.region]  # type: ignore[attr-defined]
            for panel in panels:
                panel.moving = 1.0  # type: ignore[attr-defined]
                panel.redraw()  # type: ignore[attr-defined]
            still = [[panel.line(y) for y in range(panel.count())] for panel in panels if panel.region]  # type: ignore[attr-defined]
            assert moved == still

    drive(app, (120, 36), play)


def test_only_the_lines_that_changed_are_drawn() -> None:
    app = PanelsApp(player_of("tail-first", 30))

    async def play(pilot: Pilot[None]) -> None:
        pool = app.panel("pool")
        drawn: list[int] = []
        render = pool.render_line

        def counted(y: int) -> Strip:
            drawn.append(y)
            return render(y)

        pool.render_line = counted  # type: ignore[method-assign]
        for block in (2, 3):
            app.player.select(Selection("block", block))
            app.main.sync()
            await pilot.pause()
        assert sorted(drawn) == [2, 2, 3]
        assert "[" in app.shown()[5]
        assert "[" not in app.shown()[4]

    drive(app, (120, 36), play)
