"""The requests: who runs, who waits, who is done, and how much of each prompt was found, computed, and is to come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model.rows import RequestRow, Selection, State
from ..signs import Sign
from .line import Line
from .rows import Rows

if TYPE_CHECKING:
    from ..player import Player

STATES: dict[State, tuple[str, str]] = {
    "prefill": ("▶", "computed"),
    "decode": ("▶", "generated"),
    "waiting": ("▷", "quiet"),
    "preempted": ("!", "preempted"),
    "done": ("✓", "quiet"),
    "aborted": ("†", "evicted"),
    "refused": ("†", "evicted"),
}
NUMBER = 7
STATE = 9
BAR = 6


class Requests(Rows):
    """The cursor is a row."""

    HELP = """\
# Requests

One row a request: first those that run, then those that wait, in their order, then those that are over.

* **prompt**: tokens it asked with
* **hit**: tokens of the prompt that were found in the cache when it was first admitted: their KV need not be computed
* **has KV**: of all tokens so far; in the bar blue (`█`) was found, orange (`▓`) was computed, `░` is still to come
* **computed**: tokens whose KV was computed for it, of the prompt and of the answer; again, after a preemption
* `▶` runs, `▷` waits, `!` was preempted and waits again, `✓` is done, `†` was refused or aborted

`up` and `down` move, `enter` follows the request: its tokens are shown, its blocks are marked, Explain tells its story.
"""

    def __init__(self, player: Player, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(player, id=id, classes=classes)
        self._rows: list[RequestRow] = []
        self._rows_before: list[RequestRow] = []
        self._by_id: dict[str, RequestRow] | None = None
        self._version = -1
        self._id_width = 4
        self._bar_width = 0  # the bar goes first where there is no room for it

    def read(self) -> None:
        player = self.player
        if player.version != self._version:
            self._version = player.version
            self._rows_before, self._by_id = self._rows, None
            self._rows = player.requests()
        self.cursor = max(0, min(self.cursor, len(self._rows) - 1))
        widest = max((len(row.id) for row in self._rows), default=4)
        fixed = 2 + 1 + STATE + 2 * NUMBER + 2 + NUMBER
        self._bar_width = BAR + 2 if self.width >= fixed + min(widest, 8) + BAR + 2 else 0
        self._id_width = max(4, min(widest, self.width - fixed - self._bar_width))
        view = player.view
        self.entitle("Requests", f"{len(view.running)} running · {len(view.waiting)} waiting")
        focus = player.focus_request
        for index, row in enumerate(self._rows):
            if row.id == focus:
                self.show_line(index + 1)

    @property
    def in_motion(self) -> bool:
        return any(self._before.get(row.id) != row for row in self._rows)

    @property
    def _before(self) -> dict[str, RequestRow]:
        """The rows before the last move, by request: gathered when the first of them is asked for."""
        if self._by_id is None:
            self._by_id = {row.id: row for row in self._rows_before}
        return self._by_id

    def count(self) -> int:
        return len(self._rows) + 1

    def line(self, y: int) -> Line:
        line = Line(self.width)
        if y == 0:
            line.add("  ").add("id", "quiet", width=self._id_width + 1).add("state", "quiet", width=STATE)
            line.add("prompt", "quiet", width=NUMBER, right=True).add("hit", "quiet", width=NUMBER, right=True)
            line.add("  has KV" if self._bar_width else "", "quiet", width=self._bar_width)
            return line.add("computed", "quiet", width=NUMBER + 2, right=True)
        row = self._rows[y - 1]
        glyph, style = STATES[row.state]
        over = row.state in ("done", "aborted", "refused")
        plain = "quiet" if over else "text"
        here = " cursor" if self.has_focus and y - 1 == self.cursor else ""
        name = "text strong" if row.id == self.player.focus_request else plain
        rest = plain + here
        line.add(f"{glyph} ", style + here).add(row.id, name + here, width=self._id_width).add(" ", rest)
        line.add(row.state, style + here, width=STATE)
        line.add(f"{row.prompt:,}", rest, width=NUMBER, right=True)
        hit = "–" if row.hit is None else f"{row.hit:,}"
        line.add(hit, ("hit" if row.hit else plain) + here, width=NUMBER, right=True).add("  ", rest)
        if self._bar_width and not over:
            self._bar(line, row)
        elif self._bar_width:
            line.add(" " * self._bar_width, rest)
        return line.add(f"{row.computed:,}" if row.computed else "–", rest, width=NUMBER, right=True)

    def _bar(self, line: Line, row: RequestRow) -> None:
        """How much of the tokens so far has KV. In motion it is on its way from what it was: back to nothing when the
        request is preempted."""
        has = row.has_kv
        if self.moving < 1:
            before = self._before.get(row.id)
            was = before.has_kv if before else 0
            has = round(was + (has - was) * self.moving)
        total = max(row.total, 1)
        found = round(min(row.found, has) / total * BAR)
        filled = round(has / total * BAR)
        was_found, was_computed = map(self.glyph, (Sign.HIT, Sign.COMPUTED)) if self.ascii else "█▓"
        line.add(was_found * found, "hit").add(was_computed * (filled - found), "computed")
        line.add("░" * (BAR - max(found, filled)), "line").add("  ")

    def under_cursor(self) -> Selection | None:
        return Selection("request", self._rows[self.cursor].id) if self._rows else None

    def describe(self, x: int, y: int) -> str:
        if not 1 <= y <= len(self._rows):
            return ""
        row = self._rows[y - 1]
        return f"{row.id}: {row.state}, {row.has_kv:,} of {row.total:,} tokens have their KV"
