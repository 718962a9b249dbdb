"""The chooser: scenarios by what they teach, each with one line and the shape of its run; and the live engine."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, OptionList, Static
from textual.widgets.option_list import Option

from minicache.core.errors import MinicacheError
from minicache.sim.library import find_scenario, scenario_names
from minicache.sim.scenario import GROUPS, Scenario
from minicache.sim.timeline import Timeline

from ..model.strip import StripMap
from ..panels.line import ascii_only, cut, printable
from ..player import Player

if TYPE_CHECKING:
    from ..app import MinicacheApp
    from ..live import LiveEngine

ENGINES = {
    "tiny": "A model of a million parameters that comes with minicache; a byte is a token.",
    "smollm2": "SmolLM2-135M; `minicache model pull smollm2` fetches it first.",
}
STRIP_WIDTH = 24
TITLE_WIDTH = 47  # so much of a title has room beside its strip at 80 columns
FIRST = "timestamp-top"  # with which to begin
CACHES = {"hash": "hash chain", "radix": "radix tree"}


class Chooser(Screen[None]):
    """`enter` opens what is highlighted, over the cache that the scenario names first; `r` over the other one."""

    app: MinicacheApp
    HELP = """\
# Choose a run

`up` and `down` choose, `enter` opens, `r` opens it over the other cache. Then `→` takes one step.
"""
    BINDINGS: ClassVar = [
        Binding("enter", "open", "open", id="open"),
        Binding("r", "open_other", "with the other cache", id="open_other"),
        Binding("question_mark,f1", "help", "help", id="chooser_help"),
        Binding("d", "theme", "dark or light", id="chooser_theme"),
        Binding("q", "quit", "quit", id="chooser_quit"),
    ]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012 (Textual's type)
    DEFAULT_CSS = """
    Chooser {
        background: $background;
        #heading { height: 3; padding: 1 2 0 2; }
        #body { height: 1fr; layout: vertical; }
        &.-wide #body { layout: horizontal; }
        OptionList { border: round $mc-line; background: $background; padding: 0 1; scrollbar-size-vertical: 1; }
        OptionList:focus { border: round $mc-focus; }
        #scenarios { height: 1fr; }
        &.-wide #scenarios { width: 84; height: 100%; }
        #about { border: round $mc-line; padding: 0 1; height: 8; }
        &.-wide #about { width: 1fr; height: 100%; }
        Footer { background: $background; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        found = map(find_scenario, scenario_names())
        self._scenarios = {
            s.name: s for s in sorted(found, key=lambda s: (GROUPS.index(s.group), s.name != FIRST, s.name))
        }

    def compose(self) -> ComposeResult:
        yield Static(
            Content.assemble(("minicache", "bold $mc-hit"), "  ↑ ↓ choose, enter opens, r opens over the other cache"),
            id="heading",
        )
        with Horizontal(id="body"):
            yield OptionList(*self._options({}), id="scenarios")
            with VerticalScroll(id="about", can_focus=False):
                yield Static("", id="story", markup=False)
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        options.highlighted = 1
        options.focus()
        self.call_after_refresh(self._draw_strips)

    def _options(self, strips: dict[str, Content]) -> Iterator[Option]:
        for group, members in groupby(self._scenarios.values(), key=lambda scenario: scenario.group):
            yield Option(Content.styled(group, "bold $mc-quiet"), disabled=True)
            for scenario in members:
                title = cut(printable(scenario.title), TITLE_WIDTH - 1)
                name = Content.styled("  " + title.ljust(TITLE_WIDTH), "$mc-text")
                yield Option(name + strips[scenario.name] if strips else name, id=scenario.name)
        yield Option(Content.styled("A live engine", "bold $mc-quiet"), disabled=True)
        for model in ENGINES:
            yield Option(Content.styled(f"  {model}: type a prompt, watch it served", "$mc-text"), id=f"engine {model}")

    def _draw_strips(self) -> None:
        """The runs take a few milliseconds each: made when the screen stands."""
        strips = {name: self._strip(scenario) for name, scenario in self._scenarios.items()}
        options = self.query_one(OptionList)
        highlighted = options.highlighted
        options.clear_options()
        options.add_options(self._options(strips))
        options.highlighted = highlighted

    def _strip(self, scenario: Scenario) -> Content:
        cells = StripMap(Timeline.record(scenario)).cells(STRIP_WIDTH, -1)
        plain = self.app.has_class("-ascii")
        pieces = [(ascii_only(cell.glyph) if plain else cell.glyph, f"$mc-{cell.kind or 'line'}") for cell in cells]
        return Content.assemble(*pieces)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        self.query_one("#story", Static).update(self._about(event.option_id or ""))

    def _about(self, id: str) -> str:
        if id.startswith("engine "):
            return ENGINES[id.removeprefix("engine ")]
        scenario = self._scenarios[id]
        caches = " or ".join(CACHES[kind] for kind in scenario.kinds)
        return (
            f"{scenario.title}\n\n{' '.join(scenario.story.split())}\n\nOver the {caches}. From a shell: "
            f"minicache tui {scenario.name}"
        )

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._open(event.option_id or "")

    def action_open(self) -> None:
        self.query_one(OptionList).action_select()

    def action_open_other(self) -> None:
        options = self.query_one(OptionList)
        if options.highlighted is not None:
            self._open(options.get_option_at_index(options.highlighted).id or "", other=True)

    def _open(self, id: str, other: bool = False) -> None:
        if id.startswith("engine "):
            self._load(id.removeprefix("engine "))
            return
        scenario = self._scenarios[id]
        kind = scenario.kinds[0]
        if other:
            kind = "radix" if kind == "hash" else "hash"
        try:
            self.app.open_stage(Player(Timeline.record(scenario, kind)))
        except MinicacheError as error:
            self.notify(str(error), severity="error", markup=False)

    @work(thread=True, exclusive=True)
    def _load(self, model: str) -> None:
        from ..live import LiveEngine

        self.app.call_from_thread(self.notify, f"Loading {model} …", markup=False)
        try:
            live = LiveEngine(model)
        except (MinicacheError, ModuleNotFoundError) as error:
            self.app.call_from_thread(self.notify, _sentence(error), severity="error", markup=False)
        else:
            self.app.call_from_thread(self._opened, live)

    def _opened(self, live: LiveEngine) -> None:
        self.app.open_stage(live.player, live)

    def action_help(self) -> None:
        self.app.action_toggle_help()

    def action_theme(self) -> None:
        self.app.action_toggle_theme()

    def action_quit(self) -> None:
        self.app.exit()


def _sentence(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"A live engine needs the package {error.name!r}: pip install 'minicache[engine]'"
    return str(error)
