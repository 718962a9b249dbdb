"""The legend of the pool: only signs that are on the screen, all of them or none, where there is room."""

import pytest

from minicache_tui.cells import CODE
from minicache_tui.panels.legend import WORDS, legend_lines
from minicache_tui.panels.pool import Pool
from minicache_tui.signs import UNICODE, Sign

from .shell_app import Shell, drive

ALL = bytes(CODE[sign] for sign in Sign)


@pytest.mark.parametrize("width", [20, 40, 76, 150])
def test_it_names_every_sign_that_is_there_and_no_other(width) -> None:
    for signs in (list(Sign), [Sign.EMPTY], [Sign.FINDABLE, Sign.HIT], [Sign.NULL, Sign.PREEMPTED]):
        codes = bytes(CODE[sign] for sign in signs)
        lines = legend_lines(codes, False, width, 30, UNICODE.mark)
        text = " ".join(line.text for line in lines)
        assert len(lines) == 30
        assert not lines[0].text.strip(), "it stands at the bottom"
        for sign, words, _ in WORDS:
            assert (words in text) == (sign in signs)
        assert all(line.end <= width for line in lines)


def test_where_there_is_no_room_for_all_there_is_none() -> None:
    assert len(legend_lines(ALL, False, 150, 1, UNICODE.mark)) == 1, "in fewer words"
    needed = next(n for n in range(1, 20) if legend_lines(ALL, False, 40, n, UNICODE.mark))
    assert needed > 1
    assert [line.text.strip() != "" for line in legend_lines(ALL, False, 40, needed, UNICODE.mark)] == [True] * needed
    assert legend_lines(ALL, False, 40, needed - 1, UNICODE.mark) == []
    assert legend_lines(ALL, False, 40, -3, UNICODE.mark) == []


def test_an_overview_has_no_null_block() -> None:
    lines = legend_lines(bytes([CODE[Sign.NULL], CODE[Sign.USED]]), True, 76, 1, UNICODE.mark)
    assert [line.text.strip() for line in lines] == ["● in use"]


@pytest.mark.parametrize("size", [(60, 20), (80, 24)])
def test_where_there_is_no_room_for_it_the_frame_says_where_the_signs_are_explained(size) -> None:
    async def play(shell: Shell) -> None:
        await shell.press("right", "right", "z")
        text = "\n".join(shell.lines)
        assert "· empty" not in text
        assert "z: overview · ?: signs" in text
        await shell.press("z")
        text = "\n".join(shell.lines)
        assert "· empty" in text, "an overview leaves a line to the legend"

    drive(play, "timestamp-top", size=size)


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
def test_the_legend_stays_where_most_happens(size) -> None:
    """Under pressure the pool shows more signs at once than one line holds in many words."""

    async def play(shell: Shell) -> None:
        most: set[str] = set()
        pool = shell.stage.query_one(Pool)
        while not shell.player.at_end and len(most) < 6:
            shell.player.step()
            pool.sync()
            assert any(line.text.strip() for line in pool._legend), shell.player.place
            most = max(most, set(shell.player.cells.codes), key=len)
        assert len(most) >= 6

    drive(play, "thrashing", size=size)


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
def test_the_signs_of_every_place_are_explained_on_the_screen(size) -> None:
    """In a run whose pool is an overview at 80×24 and single blocks at 160×48."""

    async def play(shell: Shell) -> None:
        pool = shell.stage.query_one(Pool)
        seen = set()
        while not shell.player.at_end:
            await shell.press("right")
            text = "\n".join(shell.lines)
            for sign, words, short in WORDS:
                if CODE[sign] in shell.player.cells.codes and not (sign is Sign.NULL and pool._grid.overview):
                    assert f"{pool.mark(sign, 3)} {words}" in text or f"{pool.mark(sign, 3)} {short}" in text
                    seen.add(sign)
        assert {Sign.EMPTY, Sign.FINDABLE, Sign.COMPUTED, Sign.GENERATED} <= seen

    drive(play, "timestamp-top", size=size)
