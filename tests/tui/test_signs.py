"""The signs: on a screen each stands for one thing, in Unicode and in plain ASCII, and every one is in a legend."""

import pytest

from minicache_tui.help_text import OTHER_SIGNS
from minicache_tui.model import strip
from minicache_tui.panels.line import ascii_only
from minicache_tui.panels.requests import STATES
from minicache_tui.panels.strip import BREAKPOINT
from minicache_tui.panels.styles import STYLES, of_sign
from minicache_tui.screens.chooser import Chooser
from minicache_tui.signs import ASCII, NEWS, UNICODE, Sign

from .shell_app import Shell, drive

RUNS = {"prefill": "runs", "decode": "runs", "aborted": "refused"}  # states that share a sign: what it says
FRAMES = "│├└┤▌"  # edges of blocks, branches, the ends of the strip, the sentence that tells where we are
ALIKE = {Sign.HIT, Sign.COMPUTED, Sign.EVICTED, Sign.PREEMPTED}  # the same in the pool and on the strip


def things() -> list[tuple[str, str]]:
    """Every sign of the player's screen, and what it stands for."""
    signs = [(UNICODE[sign], "cached" if sign is Sign.FINDABLE else str(sign)) for sign in Sign]
    signs += zip(strip.GLYPHS, strip.BRIEF, strict=True)
    signs += [(glyph, RUNS.get(state, state)) for state, (glyph, _) in STATES.items()]
    return [*signs, (BREAKPOINT, "breakpoint"), *((frame, f"frame {frame}") for frame in FRAMES)]


@pytest.mark.parametrize("clean", [str, ascii_only], ids=["unicode", "ascii"])
def test_no_sign_stands_for_two_things(clean) -> None:
    meanings: dict[str, set[str]] = {}
    for glyph, thing in things():
        meanings.setdefault(clean(glyph), set()).add(thing)
    assert {glyph: what for glyph, what in meanings.items() if len(what) > 1} == {}


def test_what_is_the_same_has_the_same_sign() -> None:
    for sign in ALIKE:
        assert UNICODE[sign] == strip.GLYPHS[strip.BRIEF.index(str(sign))]
    for state, name in (("preempted", "preempted"), ("done", "done"), ("refused", "refused"), ("aborted", "refused")):
        assert STATES[state][0] == strip.GLYPHS[strip.BRIEF.index(name)]
    assert {ascii_only(UNICODE[sign]) for sign in Sign} == {ASCII[sign] for sign in Sign}


@pytest.mark.parametrize("cursor", [False, True])
@pytest.mark.parametrize("chosen", [False, True])
def test_what_is_news_stands_out_and_nothing_else(cursor, chosen) -> None:
    for sign in Sign:
        words = of_sign(sign, cursor, chosen).split()
        assert set(words) <= set(STYLES)
        assert ("strong" in words, f"on-{sign}" in words) == (sign in NEWS, sign in NEWS)
        assert ("cursor" in words, "chosen" in words) == (cursor, chosen)


def test_every_state_of_a_request_is_in_the_help() -> None:
    assert {glyph for glyph, _ in STATES.values()} <= {glyph for glyph, _, _ in OTHER_SIGNS}


@pytest.mark.parametrize("ascii", [False, True])
@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
def test_the_chooser_explains_every_sign_of_its_strips(size, ascii) -> None:
    async def play(shell: Shell) -> None:
        chooser = shell.app.screen
        assert isinstance(chooser, Chooser)
        explained = "\n".join(line for line in shell.lines if "arrives  " in line or "split  " in line)
        cells = [cell for each in chooser._strips.values() for cell in each.cells(chooser._strip_width, -1)]
        assert len(cells) > 100
        for cell in cells:
            rank = strip.GLYPHS.index(cell.glyph)
            assert shell.app.plain(f"{cell.glyph} {strip.BRIEF[rank]}") in explained
        assert len({cell.glyph for cell in cells}) >= 9

    drive(play, None, size=size, ascii=ascii)


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
def test_in_ascii_the_bar_of_a_request_has_the_signs_of_what_it_shows(size) -> None:
    """What was found and what was computed, as in the pool; below the words that say what the bar is."""

    async def play(shell: Shell) -> None:
        await shell.press("2")
        seen = set()
        while not shell.player.at_end:
            await shell.press("pagedown")
            lines = [line for line in shell.lines if "|" in line]
            heading = next(line for line in lines if "has KV" in line)
            column = heading.index("has KV")
            for row in shell.player.requests():
                if row.state in ("prefill", "decode"):
                    line = next(line for line in lines if f"> {row.id} " in line)
                    bar = line[column : column + len("has KV")]
                    assert set(bar) <= {ASCII[Sign.HIT], ASCII[Sign.COMPUTED], "."}
                    seen |= set(bar)
        assert {ASCII[Sign.HIT], ASCII[Sign.COMPUTED]} <= seen

    drive(play, "timestamp-end", size=size, ascii=True)
