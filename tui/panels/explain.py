"""Explain: what just happened, in whole sentences; by which rule, what would have made it different, who decided.

Before the first event it tells the story of the scenario. When something is selected it explains that. The sentences
are those of the transcript (`minicache.sim.words`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minicache.core.events import RequestFinished
from minicache.sim.errors import UnknownThing
from minicache.sim.explainer import Account, Explained
from minicache.sim.rules import Rule
from minicache.sim.words import closing_words

from ..keys import key_of
from ..model.token_text import visible
from .line import Line, cut, printable, wrapped
from .panel import Panel

if TYPE_CHECKING:
    from ..player import Player

Row = list[tuple[str, str]]  # runs of text with their styles

RULE = "The rule: "
CARD = 44  # cells of the right column, in which the rule stands where there is room for one
READABLE = 104  # from a longer line the eye does not find back to the next one
INDENT = "  "
SAID = 240  # cells of a prompt or an answer that are shown


class Explain(Panel):
    """Scrolls with the arrow keys and the wheel."""

    HELP = """\
# Explain

What happened since the place before, sentence by sentence; the last one is where you are. Below or beside it stand
the **rule** by which it was so, what would have made it **different**, and the **function** of `minicache.core` that
decided.

Select a block, a node, a token, a request or an event of the event strip (focus the panel with `tab`, move with the
arrow keys, press `enter`), and it explains that instead; a click does the same, but on the event strip it goes there.
`{leave}` goes back to what happened.

`up` and `down` scroll.
"""

    def __init__(self, player: Player, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(player, id=id, classes=classes)
        self._rows: list[Row] = []
        self._card: list[Row] = []
        self._told: tuple[object, ...] = ()
        self._title = self._below = ""

    def read(self) -> None:
        player = self.player
        told = (id(player), player.version, self.width, self.height)
        if told == self._told:
            return
        self._told = told
        self._card = []
        first = 0  # the row to begin with
        if player.selection.kind != "nothing":
            self._rows = self._selected()
        elif player.place < 0:
            self._rows = self._story(player.story())
        else:
            first = self._beat(player.sentences())
        self.virtual_size = self.virtual_size.with_height(len(self._rows))
        if self.scroll_offset.y != first:
            self.scroll_to(y=first, animate=False, force=True)
        self._entitle()

    def _entitle(self) -> None:
        """The titles, and how much there is to scroll."""
        above = self.scroll_offset.y
        below = len(self._rows) - above - self.height
        more = [f"↑ {above}"] if above > 0 else []
        more += [f"↓ {below} more"] if below > 0 else []
        self.entitle(self._title, " ".join(more), self._below)

    def count(self) -> int:
        return len(self._rows)

    def line(self, y: int) -> Line:
        line = Line(self.width)
        for text, style in self._rows[y]:
            line.add(text, style)
        beside = y - self.scroll_offset.y
        if 0 <= beside < len(self._card):
            line.to(self.width - CARD - 2).add("│ ", "line")
            for text, style in self._card[beside]:
                line.add(text, style)
        return line

    def move(self, dx: int, dy: int) -> bool:
        self.scroll_to(y=self.scroll_offset.y + dy, animate=False, force=True)
        return True

    def scrolled(self) -> None:
        self._entitle()
        self.show_titles()
        self.redraw()

    # What there is to tell

    def _story(self, story: str) -> list[Row]:
        title, _, text = story.partition("\n")
        self._title, self._below = f"The story · {title}", f"press {key_of(self.app, 'forward')} to begin"
        if not len(self.player.timeline):
            self._below = f"press {key_of(self.app, 'inject')} to type a prompt" if self.player.grows else ""
        return self._paragraph(text.strip(), "text", self.width)

    def _beat(self, accounts: list[Account]) -> int:
        """The rows, and which of them to begin with so that the last sentence is seen. When all is over that is what
        came of it, and in the place of a rule stands what else one can do."""
        if self.player.is_over:
            now = accounts[-1]
            fork, back = key_of(self.app, "fork"), key_of(self.app, "back")
            what_if = Rule("what if?", f"{fork} changes something and makes the run again; {back} goes back.", "")
            accounts = [*accounts, Account(now.place, now.step, closing_words(self.player.index), what_if)]
        *earlier, last = accounts
        beside = self.width >= CARD + 70
        width = self.width - CARD - 3 if beside else self.width
        before = [row for account in earlier for row in self._told_of(account, "quiet", width)]
        if self.player.is_over:
            told = self._paragraph(last.sentence, "text strong", width, begin="▌ ") + self._said_last(earlier, width)
        else:
            told = self._told_of(last, "text strong", width, begin="▌ ")
        if ending := self.player.how_it_ends():
            told += self._paragraph(ending, "text", width)
        self._rows = before + told
        title = f"Explain · step {last.step} · event {last.place:,}"
        if beside:
            self._card = self._rule_card(last.rule)
            self._title, self._below = title, ""
            self._rows += [[] for _ in range(min(len(self._card), self.height) - len(self._rows))]
            return max(0, min(len(before), len(before) + len(told) - self.height))
        rule = self._rule(last.rule, width)
        self._rows += rule
        self._title, self._below = title, last.rule.decided_by
        return max(0, min(len(before), len(self._rows) - self.height))

    def _told_of(self, account: Account, style: str, width: int, begin: str = INDENT) -> list[Row]:
        """The sentence; where a live engine's request ends, what was asked and answered too."""
        rows = self._paragraph(account.sentence, style, width, begin)
        event = self.player.timeline.events[account.place]
        return rows + (self._said(event.request, width) if isinstance(event, RequestFinished) else [])

    def _said_last(self, told: list[Account], width: int) -> list[Row]:
        """The answer that was given last, unless it is told before."""
        timeline = self.player.timeline
        place = timeline.previous(len(timeline), "RequestFinished")
        if place is None or any(account.place == place for account in told):
            return []
        event = timeline.events[place]
        return self._said(event.request, width) if isinstance(event, RequestFinished) else []

    def _said(self, request: str, width: int) -> list[Row]:
        """The prompt and the answer of a live engine's request, each as one text, shortened."""
        texts = self.player.said(request)
        answer = "The answer" if request in self.player.view.ended else "The answer so far"
        parts = zip(("The prompt", answer), texts, strict=True) if texts else ()
        lines = (f"{name}: “{cut(printable(visible(text)), SAID)}”" for name, text in parts if text)
        return [row for line in lines for row in self._paragraph(line, "text", width)]

    def _selected(self) -> list[Row]:
        try:
            return self._explained(self.player.explain())
        except UnknownThing as error:  # it is not there at this place
            self._title, self._below = "Explain", self._back
            return self._paragraph(f"{str(error)[:1].upper()}{str(error)[1:]}.", "text", self.width)

    @property
    def _back(self) -> str:
        return f"{key_of(self.app, 'leave')}: back to what happened"

    def _explained(self, explained: Explained) -> list[Row]:
        self._title, self._below = f"Explain · {explained.subject}", self._back
        rows = self._paragraph(explained.summary, "text strong", self.width, begin="▌ ")
        if self.player.selection.kind == "request":
            rows += self._said(str(self.player.selection.id), self.width)
        for account in reversed(explained.accounts):
            where = f"Event {account.place:,}, step {account.step}. "
            rows += [[], *self._paragraph(where + account.sentence, "text", self.width)]
            rows += self._rule(account.rule, self.width)
            rows.append([(INDENT + account.rule.decided_by, "quiet")])
        return rows

    def _paragraph(self, text: str, style: str, width: int, begin: str = INDENT) -> list[Row]:
        return [[(begin, "focus"), (part, style)] for part in wrapped(text, min(width, READABLE) - len(begin))]

    def _rule(self, rule: Rule, width: int) -> list[Row]:
        """The rule's name and what would have made it different, in the lines of one paragraph."""
        if not rule.decided_by:  # nothing was decided
            return self._paragraph(f"{rule.name.capitalize()} {rule.otherwise}", "focus", width)
        rows = self._paragraph(f"{RULE}{rule.name}. {rule.otherwise}", "quiet", width)
        first = rows[0][1][0]
        if first.startswith(RULE + rule.name):
            rest = first.removeprefix(RULE + rule.name)
            rows[0] = [(INDENT + RULE, "quiet"), (rule.name, "focus"), (rest, "quiet")]
        return rows

    def _rule_card(self, rule: Rule) -> list[Row]:
        if not rule.decided_by:
            return [[(part, "focus")] for part in wrapped(f"{rule.name.capitalize()} {rule.otherwise}", CARD)]
        first, *more = wrapped(RULE + rule.name, CARD)
        rows: list[Row] = [[(RULE, "quiet"), (first.removeprefix(RULE), "focus strong")]]
        rows += [[(part, "focus strong")] for part in more]
        rows += [[(part, "text")] for part in wrapped(rule.otherwise, CARD)]
        return rows + [[(part, "quiet")] for part in rule.decided_by.split(" ")]
