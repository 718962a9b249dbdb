"""The frames of two runs in lock-step.

    left     ●──●────────●─────●  │ ●───●
    right    ●──────●──────●───●  │ ●─────●
    frames   0  1   2    3     4  │ 5   6
             └────── step 1 ───┘  └ step 2

A frame is a pair of places. From one frame to the next each side goes to its next stop within the step; whoever has
none left waits at the end of the step for the other.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from minicache.sim.timeline import Timeline

from .model.strip import PLAIN, rank_of
from .player import Player


def frames(left: Player, right: Player) -> Iterator[tuple[int, int]]:
    """The pairs of places, from before both runs to the end of both."""
    places = [-1, -1]
    players = (left, right)
    yield -1, -1
    while True:
        ahead = [player.beats.after(place) for player, place in zip(players, places, strict=True)]
        steps = [player.timeline.step_of(p) for player, p in zip(players, ahead, strict=True) if p is not None]
        if not steps:
            return
        step = min(steps)
        for side, (player, following) in enumerate(zip(players, ahead, strict=True)):
            if following is not None and player.timeline.step_of(following) <= step:
                places[side] = following
            else:
                places[side] = max(places[side], _end_of_step(player.timeline, step))
        yield places[0], places[1]


def _end_of_step(timeline: Timeline, step: int) -> int:
    """The last event of a step, or of the run if that is shorter."""
    last = len(timeline) - 1
    if last < 0 or timeline.step_of(last) <= step:
        return last
    return timeline.place_of_step(step + 1) - 1


def ranks_of(left: Player, right: Player, pairs: Sequence[tuple[int, int]]) -> bytes:
    """How rare what either side comes over is, as `rank_of`, for each frame but the first."""
    ranks = bytearray()
    for before, now in pairwise(pairs):
        sides = zip((left, right), before, now, strict=True)
        passed = (event for player, first, last in sides for event in player.timeline.events[first + 1 : last + 1])
        ranks.append(max(map(rank_of, passed), default=PLAIN))
    return bytes(ranks)
