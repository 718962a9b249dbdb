"""Prompts, ids and titles are anybody's text: on the screen they are text, and they do nothing else."""

import unicodedata

import pytest
from textual.pilot import Pilot

from minicache_tui.player import Selection
from tests.tui.panels_app import PanelsApp, drive, player_of_text

TOML = """
title = "[bold]title[/] \\u001b[31m"
story = "A [red]story[/red] with [brackets] and \\u001b]0;a title\\u0007."
[cache]
kind = "{kind}"
block_size = {block_size}
num_blocks = 200
[[request]]
id = "[r1]"
prompt = [{{ text = "[/red][x] {nasty} end of it" }}]
max_tokens = 2
[[request]]
id = "r2"
at = 1.0
prompt = [{{ text = "[/red][x] {nasty} another end" }}]
max_tokens = 2
"""
NASTY = {
    "escape": "\\u001b[2J\\u001b[31mred \\u009b5m \\u001b]0;x\\u0007",
    "control": "a\\tb\\r\\nc\\u0000\\u007f\\b",
    "wide": "你好，世界 ｆｕｌｌ 한국어",
    "emoji": "👩‍👩‍👧 👍🏽 ❤️ 🇩🇪 🙂",
    "combining": "e\\u0301\\u0301 n\\u0303 \\u0300",
    "bidi": "\\u202eright to left\\u202c שלום \\u2066x\\u2069",
}


@pytest.mark.parametrize(("name", "ascii"), [*((name, False) for name in NASTY), ("escape", True), ("emoji", True)])
def test_no_text_acts_on_the_terminal_or_breaks_the_frame(name: str, ascii: bool) -> None:
    player = player_of_text(TOML.format(kind="hash", block_size=4, nasty=NASTY[name]))
    app = PanelsApp(player, ascii=ascii)

    async def play(pilot: Pilot[None]) -> None:
        wall = "|" if ascii else "│"
        for place in (-1, 0, 5, len(player.timeline) // 2, len(player.timeline) - 1):
            player.seek(place)
            app.main.sync()
            await pilot.pause()
            for line in app.shown():
                assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cs") for char in line), line
            for strip in app.screen._compositor.render_strips():
                assert strip.cell_length == 120
            for panel in ("pool", "chain", "ribbon", "explain"):
                widget = app.panel(panel)
                for y in range(widget.height):
                    assert widget.render_line(y).cell_length == widget.width
            assert sum(line.endswith(wall) for line in app.shown()) > 20
        text = "\n".join(app.shown())
        assert "[bold]title[/]" in text
        assert "[/red][x]" in text.replace(wall, "")

    drive(app, (120, 36), play)


def test_a_selected_request_with_brackets_is_explained_as_text() -> None:
    player = player_of_text(TOML.format(kind="radix", block_size=1, nasty="[link=x]y[/link]"))
    app = PanelsApp(player)

    async def play(pilot: Pilot[None]) -> None:
        player.end()
        player.select(Selection("request", player.requests()[0].id))
        app.main.sync()
        await pilot.pause()
        await pilot.hover("#requests", offset=(4, 2))
        await pilot.pause(0.6)
        screen = "\n".join(app.shown())
        assert "request [r1]" in screen or "request r2" in screen
        assert "[link=x]y[/link]" in screen

    drive(app, (160, 48), play)
