"""A forest from top to bottom, row by row, kept while it changes.

item    rows
a       a1          An item has one row or several, and the items that hang on it follow: `a` has two.
├ b     │ b1 b2     The rows are one list, of which a change takes out or puts in a slice.
└ c     │ c1
d       d1
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

Row = Hashable  # the name of a row


@dataclass(slots=True, eq=False)
class Item:
    """`rows` are the names of its rows, all different in an outline; there is at least one. `below` hang on it. `seen`
    is where its first row was when somebody last looked for it."""

    rows: list[Row]
    parent: "Item | None" = None
    below: "list[Item]" = field(default_factory=list)
    seen: int = 0


class Outline:
    """Items hang on `root`, which has no rows, or on one another."""

    def __init__(self) -> None:
        self.root = Item([])
        self.rows: list[Row] = []

    def lay_out(self) -> None:
        """All rows anew, after items were hung on one another without telling."""
        self.rows = list(self._rows_of(self.root))

    def add(self, item: Item, parent: Item, at: int) -> None:
        """Hang an item on another as number `at`, with all that hangs on it."""
        start = self.start(parent.below[at]) if at < len(parent.below) else self._end(parent)
        parent.below.insert(at, item)
        item.parent = parent
        self.rows[start:start] = self._rows_of(item)

    def remove(self, item: Item) -> None:
        """Take an item away, with all that hangs on it."""
        assert item.parent is not None
        del self.rows[self.start(item) : self._end(item)]
        item.parent.below.remove(item)

    def set_rows(self, item: Item, rows: list[Row]) -> None:
        """Give an item other rows."""
        if rows != item.rows:
            start = self.start(item)
            self.rows[start : start + len(item.rows)] = rows
            item.rows = rows

    def cut(self, item: Item, head: list[Row], lower: Item) -> None:
        """Divide an item: it keeps these rows, and what hung on it hangs on `lower`, which hangs on it alone."""
        self.set_rows(item, head)
        lower.parent, lower.below, item.below = item, item.below, [lower]
        for other in lower.below:
            other.parent = lower
        start = self.start(item) + len(head)
        self.rows[start:start] = lower.rows

    def join(self, item: Item) -> None:
        """The reverse: an item takes over the rows of the only one that hangs on it."""
        (lower,) = item.below
        item.rows, item.below = item.rows + lower.rows, lower.below
        for other in item.below:
            other.parent = item

    def branches(self, item: Item) -> tuple[bool, ...]:
        """Of each level down to the item's first row, whether more siblings follow on it. Every row is a level."""
        levels: list[bool] = []
        while item.parent is not None:
            levels.append(item is not item.parent.below[-1])
            item = item.parent
            levels += [False] * (len(item.rows) - 1)
        return tuple(reversed(levels))

    def start(self, item: Item) -> int:
        """The number of its first row."""
        row = item.rows[0]
        if not (item.seen < len(self.rows) and self.rows[item.seen] == row):
            item.seen = self.rows.index(row)
        return item.seen

    def _end(self, item: Item) -> int:
        """The row behind all that hangs on the item: where its next sibling begins, or that of what it hangs on."""
        while item.parent is not None:
            siblings = item.parent.below
            number = siblings.index(item) + 1
            if number < len(siblings):
                return self.start(siblings[number])
            item = item.parent
        return len(self.rows)

    def _rows_of(self, item: Item) -> Iterator[Row]:
        pending = [item]
        while pending:
            item = pending.pop()
            yield from item.rows
            pending += reversed(item.below)
