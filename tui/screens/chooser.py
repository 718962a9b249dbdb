"""The chooser: scenarios by what they teach, each with one line and the shape of its run; and the live engine."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.events import Resize
from textual.widgets import Footer, OptionList, Static
from textual.widgets.option_list import Option

from minicache.core.errors import MinicacheError
from minicache.sim.library import find_scenario, scenario_names
from minicache.sim.scenario import CACHE_NAMES, GROUPS
from minicache.sim.timeline import Timeline

from ..comparison import Comparison
from ..model.strip import CAPTIONS, StripMap
from ..panels.line import ascii_only, cut, printable, width_of
from ..player import Player
from ..sources import open_run
from .engines import ENGINES, Engines

if TYPE_CHECKING:
    from ..app import MinicacheApp

STRIP_WIDTHS = (10, 24)  # columns of a strip, at least and at most: what the longest title leaves
BESIDE = 3  # columns: the indent, and a scrollbar
LEAST = 53  # columns of a title in the smallest terminal
FIRST = "timestamp-top"  # with which to begin


class Chooser(Engines):
    """`enter` opens what is highlighted, over the cache that the scenario names first; `r` over the other one."""

    app: MinicacheApp
    HELP = """\
# Choose a run

`up` and `down` choose, `enter` opens; `r` opens it over the other cache, where it is about both; `space` reads on in a
description that is longer than its frame. Then `{forward}` goes forward, from one thing that happens to the next. The
run that you left last opens where it was, and so does a live engine, until you quit or start another one; `n` starts it
anew.
"""
    BINDINGS: ClassVar = [
        Binding("enter", "open", "open", id="open"),
        Binding("r", "open_other", "with the other cache", id="open_other"),
        Binding("n", "open_anew", "start anew", id="open_anew"),
        Binding("space", "read_on", "Read on", show=False),
        Binding("question_mark,f1", "help", "help", id="help"),
        Binding("d", "theme", "dark or light", id="theme"),
        Binding("q", "quit", "quit", id="quit"),
    ]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012 (Textual's type)
    DEFAULT_CSS = """
    Chooser {
        background: $background;
        #heading { height: 1; padding: 0 1; }
        #body { height: 1fr; layout: vertical; }
        &.-wide #body { layout: horizontal; }
        OptionList, OptionList:focus {
            border: round $mc-focus; background: $background; background-tint: transparent; padding: 0 1;
            border-title-color: $mc-quiet; border-title-style: none; border-title-align: right;
            border-subtitle-color: $mc-quiet; border-subtitle-style: none;
            scrollbar-size-vertical: 1; scrollbar-color: $mc-line; scrollbar-background: $background;
            scrollbar-color-hover: $mc-quiet; scrollbar-background-hover: $background;
            & > .option-list--option-highlighted { background: $mc-used-tint; color: $mc-text; text-style: bold; }
        }
        &.-ascii OptionList, &.-ascii #about { border: ascii $mc-line; scrollbar-size-vertical: 0; }
        &.-ascii OptionList:focus { border: ascii $mc-focus; }
        #scenarios { height: 1fr; }
        &.-wide #scenarios { width: 70%; max-width: 92; height: 100%; }
        #about {
            border: round $mc-line; border-title-color: $mc-text; border-title-style: bold;
            border-subtitle-color: $mc-quiet; padding: 0 1; height: 11; scrollbar-size: 0 0;
        }
        &.-wide #about { width: 1fr; height: 100%; }
        Footer { background: $background; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._strips: dict[str, StripMap] = {}
        self._told = ""  # the id of what is highlighted
        found = map(find_scenario, scenario_names())
        self._scenarios = {
            s.name: s for s in sorted(found, key=lambda s: (GROUPS.index(s.group), s.name != FIRST, s.name))
        }
        self._longest = max(width_of(printable(s.title)) for s in self._scenarios.values())  # of the titles

    def compose(self) -> ComposeResult:
        words = self.app.plain("  ↑ ↓ choose, enter opens")
        yield Static(Content.assemble(("minicache", "bold $mc-hit"), words), id="heading")
        with Horizontal(id="body"):
            yield OptionList(*self._options(), id="scenarios")
            with VerticalScroll(id="about", can_focus=False):
                yield Static("", id="story", markup=False)
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        left = self._left()
        options.highlighted = options.get_option_index(left[0]) if left else 1
        options.focus()
        self.set_class(self.app.ascii, "-ascii")
        self.watch(self.query_one("#about"), "scroll_y", self._entitle, init=False)
        self.watch(self.query_one("#about"), "virtual_size", self._entitle, init=False)
        self.call_after_refresh(self._draw_strips)

    def on_screen_resume(self) -> None:
        options = self.query_one(OptionList)
        if options.highlighted is not None:
            self._tell(options.highlighted)

    def _left(self) -> tuple[str, Player | Comparison] | None:
        """What the run that was left last is here, if it is one of these, and the run where it was."""
        run, live = self.app.left, self.app.live
        if live is not None and run is live.player and live.model in ENGINES:
            return f"engine {live.model}", run
        scenario = None if run is None else (run.left if isinstance(run, Comparison) else run).timeline.scenario
        return (scenario.name, run) if run and scenario and scenario.name in self._scenarios else None

    def on_resize(self, event: Resize) -> None:
        if self._strips:
            self.call_after_refresh(self._redraw)

    def _options(self) -> Iterator[Option]:
        """A line each; the strips where the longest title leaves room for them."""
        room, of_strip = self._room, self._strip_width
        width = max(8, self._longest + 1 if of_strip else room)
        for group, members in groupby(self._scenarios.values(), key=lambda scenario: scenario.group):
            yield Option(Content.styled(group, "bold $mc-quiet"), disabled=True)
            for scenario in members:
                title = self.app.plain(cut(printable(scenario.title), width))
                name = Content.styled("  " + title.ljust(width), "$mc-text")
                yield Option(name + self._strip(scenario.name, of_strip) if of_strip else name, id=scenario.name)
        yield Option(Content.styled("A live engine", "bold $mc-quiet"), disabled=True)
        for model in ENGINES:
            yield Option(Content.styled(f"  {model}: type a prompt, watch it served", "$mc-text"), id=f"engine {model}")

    @property
    def _room(self) -> int:
        """Columns of a title and its strip; before the runs are made, of the narrowest list that there is."""
        return self.query_one(OptionList).size.width - BESIDE if self._strips else LEAST

    @property
    def _strip_width(self) -> int:
        """Columns of each strip; 0 where there is no room for any, and before the runs are made."""
        least, most = STRIP_WIDTHS
        left = self._room - self._longest - 1
        return min(left, most) if self._strips and left >= least else 0

    def _draw_strips(self) -> None:
        """The runs take a few milliseconds each: made when the screen stands."""
        self._strips = {name: StripMap(Timeline.record(scenario)) for name, scenario in self._scenarios.items()}
        self._redraw()

    def _redraw(self) -> None:
        options = self.query_one(OptionList)
        highlighted = options.highlighted
        above, below = map(self.app.plain, CAPTIONS if self._strip_width else ("", ""))
        options.border_title, options.border_subtitle = Content(above), Content(below)
        new = list(self._options())
        options.clear_options()
        options.add_options(new)
        options.highlighted = highlighted

    def _strip(self, name: str, width: int) -> Content:
        cells = self._strips[name].cells(width, -1)
        plain = self.app.ascii
        pieces = [(ascii_only(cell.glyph) if plain else cell.glyph, f"$mc-{cell.kind or 'line'}") for cell in cells]
        return Content.assemble(*pieces)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        self._tell(event.option_index)
        options, above = event.option_list, event.option_index - 1
        if options.get_option_at_index(above).disabled and options.scroll_y > above:
            options.scroll_to(y=above, animate=False, force=True)  # the first of a group shows the group's name too

    def _tell(self, index: int) -> None:
        """What there is to say of an option."""
        self._told = self.query_one(OptionList).get_option_at_index(index).id or ""
        title, story = self._about(self._told)
        about = self.query_one("#about")
        if width_of(title) > about.size.width - 2:  # a title that its frame would cut
            title, story = "", f"{title}\n\n{story}"
        about.border_title = Content(self.app.plain(title))
        about.scroll_home(animate=False, force=True)
        self.query_one("#story", Static).update(self.app.plain(story))
        self._entitle()
        self.refresh_bindings()

    def _about(self, id: str) -> tuple[str, str]:
        """The title, and what there is to say."""
        if id.startswith("engine "):
            model = id.removeprefix("engine ")
            live = self.serving(id)
            here = (
                f"It is open at step {live.player.step_now:,}: enter goes there, n starts it anew.\n\n" if live else ""
            )
            return "A live engine", f"{here}{ENGINES[model]}\n\nFrom a shell: minicache tui --engine {model}"
        scenario = self._scenarios[id]
        caches = " or ".join(CACHE_NAMES[kind] for kind in scenario.kinds)
        story = " ".join(printable(scenario.story.replace("\n", " ")).split())
        shell = f"Over the {caches}. From a shell: minicache tui {scenario.name}"
        left = self._left()
        back = f"You left it at step {left[1].step_now:,}: enter goes back there.\n\n" if left and left[0] == id else ""
        return printable(scenario.title), f"{back}{story}\n\n{shell}"

    def _entitle(self) -> None:
        """How much of the description is below its frame."""
        about = self.query_one("#about")
        below = about.virtual_size.height - round(about.scroll_y) - about.scrollable_content_region.height
        about.border_subtitle = f"{below} more lines: space" if below > 1 else "1 more line: space" if below else ""

    def action_read_on(self) -> None:
        """Down in the description; from its end back to its beginning."""
        about = self.query_one("#about")
        at_end = about.scroll_y >= about.max_scroll_y
        about.scroll_to(y=0 if at_end else about.scroll_y + 4, animate=False, force=True)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._open(event.option_id or "")

    def action_open(self) -> None:
        self.query_one(OptionList).action_select()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Another cache is offered where the scenario is about both, and an engine anew where one serves."""
        if action == "open_anew":
            return self.serving(self._told) is not None
        if action == "open_other":
            return self._told in self._scenarios and len(self._scenarios[self._told].kinds) > 1
        return super().check_action(action, parameters)

    def action_open_other(self) -> None:
        options = self.query_one(OptionList)
        if options.highlighted is not None:
            self._open(options.get_option_at_index(options.highlighted).id or "", other=True)

    def action_open_anew(self) -> None:
        self.load(self._told.removeprefix("engine "))

    def _open(self, id: str, other: bool = False) -> None:
        if id.startswith("engine "):
            live = self.serving(id)
            if live is not None:
                self.app.open_stage(live.player, live)
            else:
                self.load(id.removeprefix("engine "))
            return
        left = self._left()
        if left and left[0] == id and not other:
            self.app.open_stage(left[1])
            return
        kind = self._scenarios[id].kinds[1 if other else 0]
        try:
            self.app.open_stage(open_run(id, kind))
        except MinicacheError as error:
            self.notify(str(error), severity="error")

    def action_help(self) -> None:
        self.app.open_help()

    def action_theme(self) -> None:
        self.app.action_toggle_theme()

    def action_quit(self) -> None:
        self.app.exit()
