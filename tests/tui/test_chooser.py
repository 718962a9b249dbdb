"""The chooser: whatever it says of a run can be read, at every size."""

import re

import pytest
from textual.widgets import OptionList

from minicache.sim.library import find_scenario, scenario_names
from minicache_tui.screens.chooser import ENGINES
from minicache_tui.sources import open_run
from tests.thinned import thinned

from .shell_app import Shell, drive


def squeezed(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("size", thinned([(60, 20), (80, 24), (160, 48)]))
def test_every_description_can_be_read_to_its_end(size) -> None:
    async def play(shell: Shell) -> None:
        options, about = shell.app.screen.query_one(OptionList), shell.app.screen.query_one("#about")
        seen = 0
        for index in range(options.option_count):
            option = options.get_option_at_index(index)
            if option.disabled or option.id.startswith("engine "):
                continue
            options.highlighted = index
            await shell.pilot.pause()
            await shell.pilot.pause()
            story = find_scenario(option.id).story
            text = ""
            for _ in range(9):
                region = about.content_region
                lines = [line[region.x : region.right] for line in shell.lines[region.y : region.bottom]]
                text += " ".join(lines)
                more = "space" in shell.lines[about.region.bottom - 1]
                if not more:
                    break
                await shell.press("space")
            assert not more, option.id
            for sentence in story.split(". "):
                tail = squeezed(sentence)[-20:]
                assert tail in squeezed(text), (option.id, tail)
            assert squeezed(f"minicache tui {option.id}") in squeezed(text)
            seen += 1
        assert seen == len(list(scenario_names()))

    drive(play, None, size=size)


def test_reading_on_at_the_end_goes_back_to_the_beginning_and_another_run_begins_at_its_own() -> None:
    async def play(shell: Shell) -> None:
        first = shell.lines
        await shell.press("space")
        assert shell.lines != first
        for _ in range(9):
            if "space" not in shell.lines[-2]:
                break
            await shell.press("space")
        await shell.press("space")
        assert shell.lines == first
        await shell.press("space", "down", "up")
        assert shell.lines == first

    drive(play, None, size=(60, 20))


@pytest.mark.parametrize("size", thinned([(60, 20), (80, 24)]))
def test_the_first_of_a_group_stands_below_the_groups_name(size) -> None:
    async def play(shell: Shell) -> None:
        options = shell.app.screen.query_one(OptionList)
        for key in ("down", "up"):
            for _ in range(options.option_count):
                index = options.highlighted
                if options.get_option_at_index(index - 1).disabled:
                    name = str(options.get_option_at_index(index - 1).prompt)
                    assert any(name in line for line in shell.lines), name
                await shell.press(key)
                await shell.pilot.pause()

    drive(play, None, size=size)


@pytest.mark.parametrize(("width", "strips"), [(60, False), (80, True), (160, True)])
def test_strips_stand_where_there_is_room_for_them(width, strips) -> None:
    async def play(shell: Shell) -> None:
        line = next(line for line in shell.lines if "  A timestamp at the top" in line)
        assert ("▾" in line) == strips
        options = shell.app.screen.query_one(OptionList)
        assert options.virtual_size.height == options.option_count, "an option is a line"
        await shell.pilot.resize_terminal(140 if width == 60 else 60, 48)
        await shell.pilot.pause()
        await shell.pilot.pause()
        line = next(line for line in shell.lines if "  A timestamp at the top" in line)
        assert ("▾" in line) != strips

    drive(play, None, size=(width, 48 if width > 80 else 24))


def test_the_other_cache_is_offered_where_the_scenario_is_about_both() -> None:
    async def play(shell: Shell) -> None:
        options = shell.app.screen.query_one(OptionList)
        offered = {}
        for index in range(options.option_count):
            id = options.get_option_at_index(index).id
            if id is not None:
                options.highlighted = index
                await shell.pilot.pause()
                offered[id] = "r with the other cache" in shell.footer
        assert set(offered.values()) == {True, False}
        for id, other in offered.items():
            assert other == (id in scenario_names() and len(find_scenario(id).kinds) > 1), id

    drive(play, None)


def test_a_run_that_was_left_is_chosen_and_opens_where_it_was() -> None:
    async def play(shell: Shell) -> None:
        player = shell.player
        await shell.press("right", "right", "b")
        await shell.answer("evict")
        place, points = player.place, player.breakpoints
        for _ in range(2):
            await shell.press("escape")
            await shell.pilot.pause()
            options = shell.app.screen.query_one(OptionList)
            assert options.get_option_at_index(options.highlighted).id == "preempt-and-resume"
            assert "You left it at step" in " ".join(shell.lines)
            await shell.press("enter")
            assert shell.player is player
            assert (player.place, player.breakpoints) == (place, points)
        await shell.press("escape", "up", "enter")
        assert shell.player.timeline.scenario.name != "preempt-and-resume"
        assert shell.player.place == -1

    drive(play, "preempt-and-resume")


def test_no_story_has_marks_that_would_be_shown_raw() -> None:
    for name in scenario_names():
        scenario = find_scenario(name)
        found = re.search(r"\*\S|\b_\w+_\b|\]\(", f"{scenario.title} {scenario.story}")
        assert not found, (name, found)


@pytest.mark.parametrize(
    "size", thinned([(60, 20), (80, 24), (109, 30), (110, 36), (120, 36), (160, 48)], (60, 20), (110, 36))
)
def test_every_title_can_be_read_whole(size) -> None:
    """In the list from 80 columns on; else above or in the description of what is highlighted."""

    async def play(shell: Shell) -> None:
        options = shell.app.screen.query_one(OptionList)
        for index, option in enumerate(options.options):
            if option.id not in scenario_names():
                continue
            title = find_scenario(option.id).title
            if size[0] >= 80:
                assert f"  {title} " in str(option.prompt)
            options.highlighted = index
            await shell.pilot.pause()
            await shell.pilot.pause()
            top = shell.app.screen.query_one("#about").region.y
            assert squeezed(title) in squeezed("".join(beside(shell, top, 4)))
        assert options.virtual_size.height == options.option_count, "an option is a line"

    def beside(shell: Shell, top: int, rows: int) -> list[str]:
        region = shell.app.screen.query_one("#about").region
        return [line[region.x + 2 : region.right - 2] for line in shell.lines[top : top + rows]]

    drive(play, None, size=size)


@pytest.mark.parametrize("model", ENGINES)
def test_who_leaves_an_engine_that_a_shell_has_opened_is_where_one_chooses_it(model) -> None:
    class Engine:
        def __init__(self) -> None:
            self.model = model
            self.player = run

        def poll(self) -> bool:
            return False

        def close(self) -> None:
            pass

    async def play(shell: Shell) -> None:
        await shell.press("escape")
        await shell.pilot.pause()
        options = shell.app.screen.query_one(OptionList)
        assert options.get_option_at_index(options.highlighted).id == f"engine {model}"
        line = next(line for line in shell.lines if f"  {model}: type a prompt" in line)
        assert line

    run = open_run("two-equal-prompts")
    drive(play, run, size=(80, 24), live=Engine())
