"""Two runs on the screen: what is the same is said once, what is compared can be read, stops are those of either."""

import pytest

from minicache.sim.breakpoint import Breakpoint
from minicache.sim.fork import EditPrompt
from minicache.sim.library import find_scenario
from minicache.sim.prompt import Segment
from minicache.sim.timeline import Timeline
from minicache_tui.asks import ASKS, forked
from minicache_tui.comparison import Comparison
from minicache_tui.panels.explain import Explain
from minicache_tui.panels.parting import PartingLine
from minicache_tui.panels.pool import Pool
from minicache_tui.panels.strip import BREAKPOINT, Strip
from minicache_tui.player import Player
from minicache_tui.sources import open_run
from tests.thinned import thinned

from .shell_app import Shell, drive


def fork():
    player = Player(Timeline.record(find_scenario("timestamp-top")))
    player.go_to_request("user4")
    return Comparison.of_fork(player.fork(EditPrompt("user4", (Segment("other things", 64),))))


def policies():
    player = Player(Timeline.record(find_scenario("preempt-and-resume")))
    return Comparison.of_policies(player, {"max_num_seqs": 1})


MADE = {"kinds": lambda: Comparison.of_kinds(find_scenario("two-equal-prompts")), "fork": fork, "policies": policies}
BOTH = pytest.mark.parametrize("name", MADE)


def said(explain: Explain) -> str:
    """What a panel says, whatever its width: the words of all its rows."""
    rows = ["".join(text for text, _ in row[1:]) for row in [*explain._rows, *([[], *explain._card])]]
    return " ".join(" ".join(rows).split())


@pytest.mark.parametrize("name", thinned(MADE, "fork"))
def test_what_is_the_same_on_both_sides_is_said_once_and_what_differs_twice(name) -> None:
    async def play(shell: Shell) -> None:
        comparison = shell.stage.playable
        comparison.start()
        seen = set()
        for _ in range(60):
            shell.stage.sync()
            await shell.pilot.pause()
            await shell.pilot.pause()
            left, right = shell.stage.query(Explain)
            shown = [panel for panel in (left, right) if panel.region]
            alike = sentences(comparison.left) == sentences(comparison.right)
            assert left in shown
            assert (right in shown) == (not alike), comparison.frame
            assert sum(panel.outer_size.width for panel in shown) == 120
            for panel, player in zip(shown, (comparison.left, comparison.right), strict=False):
                last = (sentences(player)[-1:] or [player.story().partition("\n")[2]])[0]
                assert "".join(last.split()) in "".join(said(panel).split())
            seen.add(alike)
            if not comparison.step():
                break
        assert seen == {True, False}

    def sentences(player: Player) -> list[str]:
        return [account.sentence for account in player.sentences()]

    drive(play, MADE[name](), size=(120, 36))


def test_of_a_narrow_comparison_the_side_that_is_chosen_is_seen_also_where_both_say_the_same() -> None:
    async def play(shell: Shell) -> None:
        left, right = shell.stage.query(Explain)
        for key, shown in (("1", left), ("2", right)):
            await shell.press(key)
            await shell.pilot.pause()
            assert [panel for panel in (left, right) if panel.region] == [shown]
            assert "The story" in "\n".join(shell.lines)

    drive(play, MADE["kinds"](), size=(80, 24))


def test_the_focus_stays_on_what_is_said_where_a_panel_goes() -> None:
    async def play(shell: Shell) -> None:
        while shell.stage.playable.says_the_same:
            await shell.press("right")
        left, right = shell.stage.query(Explain)
        right.focus()
        await shell.press("home")
        await shell.pilot.pause()
        assert not right.region
        assert shell.stage.focused is left

    drive(play, MADE["fork"](), size=(120, 36))


@BOTH
@pytest.mark.parametrize("width", thinned([60, 66, 80, 100, 104, 120, 140, 160, 200], 60, 104))
def test_the_title_says_what_is_compared(name, width) -> None:
    async def play(shell: Shell) -> None:
        comparison = shell.stage.playable
        comparison.end()
        shell.stage.sync()
        await shell.pilot.pause()
        title = shell.lines[0]
        assert " ◀ ▶ ".join(comparison.brief) in title or " ◀ ▶ ".join(comparison.labels) in title
        assert "…" not in title
        assert f"step {comparison.step_now} of {comparison.num_steps}" in title
        if width < 104:
            rates = next(line for line in shell.lines if line.startswith(" hit rate"))
            assert all(label in rates for label in comparison.brief)
            assert "…" not in rates

    drive(play, MADE[name](), size=(width, 24))


@BOTH
@pytest.mark.parametrize(
    "kind", ["TokensComputed", "PathInserted", "BlocksAdopted", "DuplicatesFreed", "RequestPreempted"]
)
def test_the_strip_marks_the_frames_in_which_a_breakpoint_stops_either_side(name, kind) -> None:
    comparison = MADE[name]()
    comparison.breakpoints = [Breakpoint(kind=kind)]
    comparison.start()
    stops = []
    while comparison.continue_() and not comparison.at_end:
        stops.append(comparison.position)
    comparison.end()
    marked = comparison.stopping_places(comparison.breakpoints)
    assert [position for position in marked if position != comparison.position] == stops


def test_a_stop_of_the_right_side_alone_is_seen_on_the_strip_and_one_gets_there() -> None:
    async def play(shell: Shell) -> None:
        comparison = shell.stage.playable
        assert not any(type(event).__name__ == "DuplicatesFreed" for event in comparison.left.timeline.events)
        comparison.breakpoints = [Breakpoint(kind="DuplicatesFreed")]
        shell.stage.sync()
        await shell.pilot.pause()
        strip = shell.stage.query_one(Strip)
        assert 0 < strip.line(0).text.count(BREAKPOINT) <= len(comparison.stopping_places(comparison.breakpoints))
        await shell.press("c")
        here = strip._here
        assert BREAKPOINT in strip.line(0).text
        assert strip._stops_in(strip._cells[here])

    drive(play, MADE["kinds"](), size=(160, 48))


@pytest.mark.parametrize(("line", "kind"), [("duplicates", "DuplicatesFreed"), ("adopted", "BlocksAdopted")])
def test_a_kind_of_event_of_either_side_can_be_typed(line, kind) -> None:
    async def play(shell: Shell) -> None:
        comparison = shell.stage.playable
        sides = (comparison.left.timeline, comparison.right.timeline)
        assert [side.next(-1, kind) is None for side in sides].count(True) == 1
        await shell.press("b")
        assert kind in " ".join(shell.lines)
        await shell.answer(line)
        assert [point.kind for point in comparison.breakpoints] == [kind]
        assert any("of these runs" in note for note in shell.told)
        await shell.press("c")
        assert kind in {type(side.current).__name__ for side in (comparison.left, comparison.right)}

    drive(play, MADE["kinds"](), size=(160, 48))


def of_blocks(kind: str, line: str, name: str = "thrashing"):
    """A run against its fork with another pool."""
    ask = next(ask for ask in ASKS if ask.title == kind)
    return lambda: Comparison.of_fork(forked(open_run(name), ask, line))


MORE = {
    **MADE,
    "timestamp": lambda: Comparison.of_kinds(find_scenario("timestamp-top")),
    "larger pool": of_blocks("Another number of blocks", "3000", "timestamp-top"),
    "smaller blocks": of_blocks("Another block size", "1", "timestamp-top"),
    "odd blocks": of_blocks("Another block size", "3", "timestamp-top"),
    "left is shorter": lambda: Comparison.of_policies(open_run("preempt-and-resume"), {"max_num_batched_tokens": 2}),
}


@pytest.mark.parametrize("name", MORE)
@pytest.mark.parametrize("size", thinned([(60, 20), (80, 24), (120, 36)]))
def test_what_comes_of_it_all_is_said_in_a_line_of_its_own(name, size) -> None:
    async def play(shell: Shell) -> None:
        comparison = shell.stage.playable
        panel = shell.stage.query_one(PartingLine)
        for move in (comparison.start, comparison.end):
            move()
            shell.stage.sync()
            await shell.pilot.pause()
            await shell.pilot.pause()
            line = panel.line(0)
            assert line.text.strip() in shell.lines[panel.content_region.y], "it is seen"
            assert line.text.lower().replace("the ", "").startswith("whole run: ")
            assert "…" not in line.text or size[0] < 80
            first, second = (total.removesuffix(" %") for total in comparison.totals)
            assert line.text.index(first) < line.text.rindex(second)
            rates = [text for text, style in line if "on-hit" in style]
            assert rates == list(comparison.totals)
            assert all("strong" in style for text, style in line if text.strip())

    drive(play, MORE[name](), size=size)


@pytest.mark.parametrize("name", thinned(MADE, "fork"))
def test_where_they_part_is_told_as_what_comes_what_is_and_what_was(name) -> None:
    async def play(shell: Shell) -> None:
        comparison, panel = shell.stage.playable, shell.stage.query_one(PartingLine)
        step, seen = comparison.parting.step, set()
        comparison.start()
        while True:
            shell.stage.sync()
            await shell.pilot.pause()
            now = comparison.step_now
            tense = "will part in" if now < step else "part now, in" if now == step else "parted in"
            words = " ".join(panel.line(y).text.strip() for y in range(1, panel.count()))
            assert words.startswith(f"They {tense} step {step}: ")
            seen.add(tense)
            if not comparison.next_step():
                break
        assert len(seen) == 3

    drive(play, MADE[name](), size=(120, 36))


@pytest.mark.parametrize("name", MORE)
@pytest.mark.parametrize("size", thinned([(80, 24), (121, 36), (240, 70)], (121, 36)))
def test_a_cell_of_either_pool_stands_for_as_many_tokens_and_says_how_many(name, size) -> None:
    async def play(shell: Shell) -> None:
        shell.stage.playable.end()
        shell.stage.sync()
        seen = {}
        for key in "12":  # in a narrow terminal one side after the other
            await shell.press(key)
            await shell.pilot.pause()
            for pool in shell.stage.query(Pool):
                if pool.region:
                    seen[pool] = pool._grid, pool.player.view.block_size
                    tokens = pool._grid.per_cell * pool.player.view.block_size
                    says = f"1 cell = {tokens:,} token" in shell.lines[pool.region.bottom - 1]
                    assert says or pool._grid.listed
        (left, first), (right, second) = seen.values()
        if left.overview or right.overview:
            apart = left.per_cell * first - right.per_cell * second
            assert abs(apart) < max(first, second), "the same, as near as whole blocks can be"
            assert left.cell == right.cell, "and as wide"

    drive(play, MORE[name](), size=size)


@pytest.mark.parametrize("name", ["left is shorter", "kinds"])
def test_the_end_of_the_longer_side_is_at_the_end_of_the_strip(name) -> None:
    async def play(shell: Shell) -> None:
        comparison, strip = shell.stage.playable, shell.stage.query_one(Strip)
        cells = strip._cells
        for cell in cells[-3:]:
            shell.stage.moved(cell.first)
            await shell.pilot.pause()
            assert comparison.position == cell.first
        left = comparison.left.place
        await shell.pilot.click(strip, offset=(strip.region.width - 3, 0))
        await shell.pilot.pause()
        assert comparison.at_end
        assert all(player.at_end for player in (comparison.left, comparison.right))
        assert name == "kinds" or comparison.left.place == left, "the left one was over before"

    drive(play, MORE[name](), size=(120, 36))


def test_an_event_that_only_the_right_side_has_is_explained_there() -> None:
    async def play(shell: Shell) -> None:
        comparison, strip = shell.stage.playable, shell.stage.query_one(Strip)
        comparison.end()
        strip.focus()
        await shell.press("down", "left", "left", "enter")
        position = strip.pointed
        player, place = comparison.event_at(position)
        assert player is comparison.right
        assert player.selection == ("event", place)
        assert comparison.at_end, "the run stays where it is"
        await shell.press("t")
        assert comparison.position == position

    drive(play, MORE["left is shorter"](), size=(120, 36))
