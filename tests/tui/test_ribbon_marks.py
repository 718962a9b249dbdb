"""The marks on the ribbon stand over what they mark, and say without a colour where the prompt ends."""

import pytest
from textual.pilot import Pilot

from minicache.sim.library import find_scenario
from minicache.sim.timeline import Timeline
from minicache_tui.panels.line import ascii_only
from minicache_tui.player import Player
from tests.thinned import thinned
from tests.tui.panels_app import PanelsApp, drive

STEPS = 60
RUNS = [
    ("preempt-and-resume", "hash"),
    ("two-equal-prompts", "hash"),
    ("two-equal-prompts", "radix"),
    ("multi-turn", "hash"),
    ("shared-system-prompt", "radix"),
]


@pytest.mark.parametrize("ascii", thinned([False, True]), ids=["unicode", "ascii"])
@pytest.mark.parametrize("width", thinned([80, 160]))
@pytest.mark.parametrize(("name", "kind"), RUNS)
def test_an_answer_that_is_seen_is_marked_where_it_begins_or_goes_on(name, kind, width, ascii) -> None:
    player = Player(Timeline.record(find_scenario(name), kind))
    app = PanelsApp(player, ascii=ascii)
    begins, goes_on, gap = (ascii_only(words) if ascii else words for words in ("▏answer", "…answer", " … │"))
    seen = set()

    async def play(pilot: Pilot[None]) -> None:
        while player.step() and player.step_now < STEPS:
            app.main.sync()
            rows = app.ribbon_rows()
            ribbon = player.ribbon()
            assert ribbon is not None
            request = player.view.requests.get(ribbon.request) or player.view.ended[ribbon.request]
            tokens = player.texts.of(ribbon.request, request.tokens, ribbon.num_prompt_tokens)
            end = ribbon.num_prompt_tokens
            for marks, text in rows:
                if begins in marks:
                    at = marks.index(begins) + 1
                    assert text[at:].startswith(tokens.piece(end, end + 1))
                    break
                if goes_on in marks:
                    assert text[: marks.index(goes_on) + 1].endswith(gap) or marks.startswith(goes_on)
                    break
            else:
                shown = [b for b in ribbon.blocks for _, text in rows if b.start >= end and b.text in text]
                assert not shown, rows
                continue
            seen.add(ribbon.request)

    drive(app, (width, 48 if width > 100 else 24), play)
    assert seen, "some answers are seen"
