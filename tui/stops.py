"""Breakpoints over a run: where they stop, what of one is not in this run, and what can be typed."""

import re
from collections.abc import Sequence
from itertools import product

from textual.suggester import Suggester

from minicache.core.event_log import TYPES
from minicache.sim.breakpoint import Breakpoint
from minicache.sim.errors import BadBreakpoint
from minicache.sim.explainer import no_request
from minicache.sim.timeline import Timeline

from .player import Player

EVICTIONS = {"BlocksEvicted": "hash", "NodesEvicted": "radix"}  # kind of event -> the cache in which it happens
_SIGN = re.compile(r"\s*([=<])\s*")


def stopping_places(timeline: Timeline, breakpoints: Sequence[Breakpoint], after: int = -1) -> list[int]:
    """Every place behind `after` at which one of them stops, in order. Reads the run from there on."""
    places: list[int] = []
    place = timeline.run_to(after, *breakpoints) if breakpoints else None
    while place is not None:
        places.append(place)
        place = timeline.run_to(place, *breakpoints)
    return places


def stops_ahead(player: Player, breakpoints: Sequence[Breakpoint]) -> bool:
    """Whether one of them stops after where the player is."""
    return bool(breakpoints) and player.timeline.run_to(player.place, *breakpoints) is not None


def kinds_of(*timelines: Timeline) -> list[str]:
    """The types of event that happen in one of the runs, by name."""
    return [kind for kind in sorted(TYPES) if any(timeline.next(-1, kind) is not None for timeline in timelines)]


def read_breakpoints(line: str, *players: Player, may_come: bool = False) -> list[Breakpoint]:
    """A breakpoint as it is written; `evict` alone is the kind of event in whose name that is, and where both kinds of
    eviction are meant there are two. Raises `BadBreakpoint`, also for a request or a block that is in none of the runs,
    unless it `may_come`."""
    words = _SIGN.sub(r"\1", line).split()
    meant = [_written_out(word, [player.timeline for player in players]) for word in words]
    requests = list({id: None for player in players for id in player.index.requests})
    try:
        points = [Breakpoint.parse(" ".join(written)) for written in product(*meant)]
    except BadBreakpoint as error:
        example = requests[0] if requests else "ID"  # one that there is
        raise BadBreakpoint(str(error).replace("request=ID", f"request={example}")) from None
    blocks = max(player.view.num_blocks for player in players)
    for point in points:
        if point.request is not None and point.request not in requests and not may_come:
            raise BadBreakpoint(no_request(point.request, requests))
        if point.block is not None and not 0 < point.block < blocks:
            raise BadBreakpoint(f"this pool has no block b{point.block}: it has b1 to b{blocks - 1}")
    return points


def _written_out(word: str, timelines: Sequence[Timeline]) -> list[str]:
    """The conditions that a word is short for: `evict` or `kind=evict` for `kind=BlocksEvicted`."""
    short = word.removeprefix("kind=").lower()
    found = [kind for kind in sorted(TYPES) if short.isalpha() and _names(short, kind)]
    here = kinds_of(*timelines)
    found = [kind for kind in found if kind in here] or [kind for kind in found if _can_happen(kind, timelines)]
    return [f"kind={kind}" for kind in found] if len(found) == 1 or set(found) == set(EVICTIONS) else [word]


def _names(short: str, kind: str) -> bool:
    """Whether a kind's name begins so, or one of the words in it does."""
    return any(kind[at:].lower().startswith(short) for at, letter in enumerate(kind) if letter.isupper())


def _can_happen(kind: str, timelines: Sequence[Timeline]) -> bool:
    return kind not in EVICTIONS or any(timeline.kind == EVICTIONS[kind] for timeline in timelines)


class Completion(Suggester):
    """Completes the last condition of a breakpoint."""

    def __init__(self, *players: Player) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        kinds = kinds_of(*(player.timeline for player in players))
        requests = {f"request={id}": None for player in players for id in player.index.requests}
        self._words = ["kind=", *(f"kind={kind}" for kind in kinds), "request="]
        self._words += [*requests, "block=", "hash=", "hit_rate<0.5"]

    async def get_suggestion(self, value: str) -> str | None:
        *before, last = value.split(" ")
        found = next((word for word in self._words if last and word.lower().startswith(last.lower())), None)
        return " ".join([*before, found]) if found else None
