"""What can go wrong in the simulator: each error is one sentence that names the file, the line and the key."""

from minicache.core.errors import MinicacheError


class BadScenario(MinicacheError):
    """A scenario file is not what it should be; the message names file, line and key. Nothing has run."""


class UnknownScenario(MinicacheError):
    """No scenario of that name, and no file; the message suggests the nearest name."""


class UnknownThing(MinicacheError):
    """The run has no such request, block or event; the message says what it has."""


class BadBreakpoint(MinicacheError):
    """A breakpoint that can never be reached or cannot be read; the message says how it is written."""


class BadChange(MinicacheError):
    """A fork's change cannot be made at that point; the message says why, and where it could be made."""


class Stuck(MinicacheError):
    """Requests wait and nothing is computed any more: no step will ever change that."""
