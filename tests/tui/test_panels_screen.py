"""The player's screen: where panels stand at which size, and that what is drawn is what the player says."""

import itertools

import pytest
from textual.pilot import Pilot

from minicache.sim.library import find_scenario
from minicache.sim.timeline import Timeline
from minicache_tui.beats import Run
from minicache_tui.comparison import Comparison
from minicache_tui.panels.line import ascii_only
from minicache_tui.panels.panel import Panel
from minicache_tui.player import Player
from minicache_tui.signs import ASCII, UNICODE, Sign
from tests.thinned import several, thinned
from tests.tui.panels_app import PanelsApp, drive, player_of

SIZES = [(60, 20), (80, 24), (80, 48), (103, 31), (104, 32), (120, 36), (139, 41), (140, 32), (160, 24), (160, 48)]
LINES = {
    "pool": 3,
    "requests": 3,
    "chain": 3,
    "belt": 2,
    "ribbon": 2,
    "explain": 3,
    "strip": 1,
    "meters": 1,
    "title": 1,
}


@pytest.mark.parametrize("size", thinned(SIZES, SIZES[0], SIZES[-1]), ids=str)
def test_nothing_overlaps_and_nothing_is_squeezed(size: tuple[int, int]) -> None:
    app = PanelsApp(player_of("tail-first", 30))

    async def play(pilot: Pilot[None]) -> None:
        for tab in range(1, 5):
            app.main.show_tab(tab)
            await pilot.pause()
            seen = [panel for panel in app.main.query(Panel) if panel.display and panel.region]
            for one, other in itertools.combinations(seen, 2):
                assert not one.region.overlaps(other.region), (one.id, other.id)
            for panel in seen:
                assert panel.region in app.main.region, panel.id
                assert panel.height >= LINES[str(panel.id)], panel.id
            ids = {panel.id for panel in seen}
            assert {
                "title",
                "ribbon",
                "explain",
                "strip",
                "meters",
                ("pool", "requests", "chain", "belt")[tab - 1],
            } <= ids
            assert len(app.shown()) == size[1]

    drive(app, size, play)


@pytest.mark.parametrize(("tab", "ascii"), several([(1, False), (2, True), (1, True), (2, False)]))
def test_another_size_draws_what_a_screen_of_that_size_draws(tab: int, ascii: bool) -> None:
    """With no move in between: which panels are seen, their titles and their tabs."""
    sizes = [(160, 48), (80, 24), (160, 48), (80, 48), (160, 24), (120, 36), (60, 20), (104, 32)]
    seen: dict[tuple[int, int], list[str]] = {}

    def at(size: tuple[int, int]) -> list[str]:
        app, shown = PanelsApp(player_of("tail-first", 30), ascii=ascii), []

        async def look(pilot: Pilot[None]) -> None:
            app.main.show_tab(tab)
            await pilot.pause()
            app.main.set_focus(None)
            await pilot.pause()
            shown.extend(app.shown())

        drive(app, size, look)
        return shown

    app = PanelsApp(player_of("tail-first", 30), ascii=ascii)

    async def resize(pilot: Pilot[None]) -> None:
        app.main.show_tab(tab)
        await pilot.pause()
        app.main.set_focus(None)
        for size in sizes[1:]:
            await pilot.resize_terminal(*size)
            await pilot.pause()
            seen[size] = app.shown()
            tabs = "1 pool  2 requests  3 chain  4 order" in "\n".join(seen[size])
            assert tabs == (size[0] < 104 or size[1] < 32), size

    drive(app, sizes[0], resize)
    for size, lines in seen.items():
        assert lines == at(size), size


@pytest.mark.parametrize("name", ["radix-split-and-prune", "tail-first"])
def test_stepping_draws_what_a_screen_that_starts_there_draws(name: str) -> None:
    walked = PanelsApp(player_of(name))
    seen: dict[int, list[str]] = {}

    async def walk(pilot: Pilot[None]) -> None:
        for number in itertools.count():
            if not walked.playable.step():
                break
            walked.main.sync()
            if number % 9 == 4:
                await pilot.pause()
                seen[walked.player.place] = walked.shown()

    drive(walked, (120, 36), walk)
    assert len(seen) >= 3
    fresh = PanelsApp(player_of(name))

    async def jump(pilot: Pilot[None]) -> None:
        for place in reversed(seen):
            fresh.player.seek(place)
            fresh.main.sync()
            await pilot.pause()
            assert fresh.shown() == seen[place], place

    drive(fresh, (120, 36), jump)


def test_the_figures_of_the_pool_are_those_of_the_cells() -> None:
    player = player_of("tail-first", 34)
    app = PanelsApp(player)

    async def play(pilot: Pilot[None]) -> None:
        counts = player.cells.counts()
        assert f"{counts.used} in use · {counts.cached} cached · {counts.empty} empty" in "\n".join(app.shown())
        rows = app.text_of("pool")
        for block in range(1, len(player.cells)):
            assert UNICODE[player.cells[block]] in rows[block], block
        assert Sign.EVICTED in {player.cells[block] for block in range(len(player.cells))}

    drive(app, (120, 36), play)


def test_a_miss_is_seen_on_the_ribbon_where_it_is() -> None:
    player = player_of("timestamp-top")
    app = PanelsApp(player)

    async def play(pilot: Pilot[None]) -> None:
        player.next_request()
        player.next_request()
        player.next_of("PrefixMatched")
        app.main.sync()
        (marks, text), *_, (_, last) = app.ribbon_rows()
        assert marks[text.index("14:03:22") + len("14:03:2")] == "▼"
        lost = "40 of the 41 blocks after it hold the same text"
        assert f"first difference: token 13 (against user1) · {lost}" in marks
        assert "blocks …" in last
        explained = " ".join("\n".join(app.text_of("explain")).split())
        assert 'at token 13: "2" stands there instead of "1"' in explained.replace("▌ ", "")
        assert "HashChainCache.lookup" in explained

    drive(app, (160, 48), play)


def test_the_tree_is_drawn_with_its_branches() -> None:
    player = player_of("radix-split-and-prune")
    app = PanelsApp(player)

    async def play(pilot: Pilot[None]) -> None:
        player.next_of("NodeSplit")
        player.next_of("StepFinished")
        app.main.sync()
        rows = app.text_of("chain")
        assert rows[0] == "root"
        assert rows[1].startswith("└ n2")
        assert '"Translate this: "' in rows[1]
        assert rows[2].startswith("  ├ n1")
        assert '"good morning"' in rows[2]
        assert rows[3].startswith("  └ n3")
        assert '"thank you"' in rows[3]

    drive(app, (160, 48), play)


def test_in_ascii_everything_but_the_keys_is_ascii() -> None:
    app = PanelsApp(player_of("shared-system-prompt", 60), ascii=True)

    async def play(pilot: Pilot[None]) -> None:
        lines = app.shown()
        assert all(line.isascii() for line in lines[:-1])
        assert "+- Block pool" in "\n".join(lines)

    drive(app, (160, 48), play)


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_any_two_signs_differ_by_their_glyph(glyphs: object) -> None:
    marks = [glyphs.mark(sign, 3) for sign in Sign]  # type: ignore[attr-defined]
    assert len(set(marks)) == len(Sign)


def test_a_comparison_shows_both_sides_or_one_and_the_sentence_where_they_part() -> None:
    comparison = Comparison.of_kinds(find_scenario("timestamp-top"))
    for _ in range(12):
        comparison.step()
    app = PanelsApp(comparison)

    async def play(pilot: Pilot[None]) -> None:
        screen = "\n".join(app.shown())
        assert "Pool · hash chain" in screen
        assert "Pool · radix tree" in screen
        assert "finds 13 tokens of user2" in screen

    drive(app, (160, 48), play)
    narrow = PanelsApp(comparison)

    async def toggle(pilot: Pilot[None]) -> None:
        assert "hash chain" in narrow.shown()[1]
        narrow.main.show_side(2)
        await pilot.pause()
        assert "radix tree" in narrow.shown()[1]

    drive(narrow, (80, 24), toggle)


@pytest.mark.parametrize("name", ["preempt-and-resume", "timestamp-top", "radix-split-and-prune"])
def test_the_sentence_about_where_we_are_is_always_seen(name: str) -> None:
    app = PanelsApp(player_of(name))

    async def play(pilot: Pilot[None]) -> None:
        while app.player.step():
            app.main.sync()
            seen = " ".join(line.removeprefix("▌ ") for line in app.text_of("explain"))
            sentence = app.player.sentences()[-1].sentence
            assert sentence[:120] in seen or sentence[:60] in seen, sentence

    drive(app, (80, 24), play)


def test_the_story_is_told_before_the_first_event_and_how_to_begin() -> None:
    app = PanelsApp(player_of("timestamp-top"))

    async def play(pilot: Pilot[None]) -> None:
        screen = "\n".join(app.shown())
        assert "Five users ask a support bot." in screen
        assert "press → to begin" in screen
        await pilot.press("right")
        await pilot.pause()
        screen = "\n".join(app.shown())
        assert "user1 arrives with 672 tokens" in screen
        assert "press →" not in screen

    drive(app, (80, 24), play)


def test_every_meter_says_how_it_is_defined() -> None:
    app = PanelsApp(player_of("timestamp-top", 40))

    async def play(pilot: Pilot[None]) -> None:
        app.panel("meters").focus()
        for key, meter in zip(("down", "right", "right", "right"), app.player.meters(), strict=True):
            await pilot.pause()
            line = app.text_of("meters")[0]
            assert line.startswith(f"{meter.name} {meter.value}")
            assert meter.definition[:40] in line
            await pilot.press(key)

    drive(app, (160, 48), play)


def test_the_screen_takes_another_player_of_another_kind() -> None:
    app = PanelsApp(player_of("tail-first", 30))

    async def play(pilot: Pilot[None]) -> None:
        assert "Hash chain" in "\n".join(app.shown())
        app.main.playable = player_of("radix-split-and-prune", 20)
        await pilot.pause()
        await pilot.pause()
        screen = "\n".join(app.shown())
        assert "Radix tree" in screen
        assert "Hash chain" not in screen
        assert '"good morning"' in screen

    drive(app, (120, 36), play)


@pytest.mark.parametrize("kind", ["hash", "radix"])
@pytest.mark.parametrize("width", [80, 120, 160])
def test_the_hit_ends_on_the_ribbon_where_it_says_so_and_the_difference_stands_behind(width: int, kind: str) -> None:
    timeline = Timeline.record(find_scenario("timestamp-end"), kind)  # type: ignore[arg-type]
    player = Player(timeline)
    player.run_to(Run.HIT)
    app = PanelsApp(player)

    async def play(pilot: Pilot[None]) -> None:
        ribbon, rows = player.ribbon(), app.ribbon_rows()
        assert ribbon is not None
        hit, after = f"hit {ribbon.hit_tokens:,}▏", f"▼ first difference: token {ribbon.difference}"
        row = next(number for number, (marks, _) in enumerate(rows) if hit in marks)
        marks, text = rows[row]
        end = marks.index(hit) + len(hit) - 1
        assert text[end] == "│"
        first = next(block.text for block in ribbon.blocks if block.start == ribbon.hit_tokens)
        assert "".join([text[end + 1 :], *(text[1:] for _, text in rows[row + 1 :])]).startswith(first)
        assert after in "".join([marks[end:], *(marks for marks, _ in rows[row + 1 :])])

    drive(app, (width, 48 if width > 100 else 24), play)


def test_in_ascii_what_stands_for_two_things_at_once_is_told_apart() -> None:
    """A pause and a hit, a sentence and a wall, an arrival and a difference, the null block and a number."""
    for one, other in ("‖◆", "▌│", "▾▼", "∅0", "▌▶"):
        assert ascii_only(one) != ascii_only(other)
    ramp = {ascii_only(char) for char in "▁▂▃▄▅▆▇"}
    assert len(ramp) == 7
    assert ramp.isdisjoint(ASCII[sign] for sign in Sign)
