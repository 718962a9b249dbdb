"""What can go wrong in the simulator: each error is one sentence that names the file, the line and the key."""

from minicache.core.errors import MinicacheError


class BadScenario(MinicacheError):
    """A scenario file has an error; the message names file, line and key. Nothing has run."""


class UnknownScenario(MinicacheError):
    """There is no scenario and no file of that name; the message suggests the nearest name."""


class UnknownThing(MinicacheError):
    """The run has no such request, block or event; the message says which it has."""


class BadBreakpoint(MinicacheError):
    """A breakpoint cannot be read or can never be reached; the message says how to write it."""


class BadChange(MinicacheError):
    """A fork's change cannot be made at that point; the message says why, and where it could be made."""


class Stuck(MinicacheError):
    """Requests wait, nothing is computed, and no further step can change that."""
