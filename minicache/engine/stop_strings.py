"""Where a text ends: at the first stop string in it, however the text is cut into pieces.

    stop = ["END"]     pieces  "the E" "N"  "x E" "ND." …
                       shown   "the "  ""   "ENx " ""          and END is found: the answer's text is "the ENx "

What might become a stop string is held back; what a later character rules out is shown.
"""

from collections.abc import Sequence


class StopStrings:
    """Takes a text piece by piece and gives out what cannot be part of a stop string. `found` is the one that came."""

    def __init__(self, stops: Sequence[str]) -> None:
        self.found: str | None = None
        self._stops = sorted(stops, key=len, reverse=True)  # of two that end together, the longer is the one found
        self._held = ""  # the longest end of the text so far with which a stop string begins

    def push(self, piece: str, ends: bool = True) -> str:
        """The text that may be shown now. What comes after a stop string is not taken in.

        A stop string that is complete within a piece with `ends=False` does not count; it may begin there.
        """
        if self.found is not None:
            return ""
        if not self._stops:
            return piece
        text = self._held + piece
        for end in range(len(self._held) + 1, len(text) + 1) if ends else ():
            for stop in self._stops:
                if text.endswith(stop, 0, end):
                    self.found, self._held = stop, ""
                    return text[: end - len(stop)]
        self._held = self._beginning_at_the_end_of(text)
        return text[: len(text) - len(self._held)]

    def rest(self) -> str:
        """What was held back, when nothing more will come."""
        rest, self._held = self._held, ""
        return rest

    def _beginning_at_the_end_of(self, text: str) -> str:
        for length in range(min(len(text), len(self._stops[0]) - 1), 0, -1):
            end = text[-length:]
            if any(len(stop) > length and stop.startswith(end) for stop in self._stops):
                return end
        return ""
