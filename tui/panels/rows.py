"""A panel of rows below a heading: the cursor is a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .panel import Panel

if TYPE_CHECKING:
    from ..player import Player


class Rows(Panel):
    """Line 0 is the heading, line y shows row y - 1."""

    def __init__(self, player: Player, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(player, id=id, classes=classes)
        self.cursor = 0

    def move(self, dx: int, dy: int) -> bool:
        target = self.cursor + dy
        if not 0 <= target < self.count() - 1:
            return False
        self.cursor = target
        self.show_line(target + 1)
        return True

    def point(self, x: int, y: int) -> bool:
        if not 1 <= y < self.count():
            return False
        self.cursor = y - 1
        return True
