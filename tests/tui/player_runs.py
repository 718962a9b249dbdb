"""Runs that players are tested on, random walks over them, and what must be the same however a place was reached."""

from dataclasses import replace
from itertools import islice

from hypothesis import strategies as st

from minicache.sim.breakpoint import Breakpoint
from minicache.sim.fork import SetBlockSize, ShrinkPool
from minicache.sim.library import find_scenario
from minicache.sim.prompt import Text
from minicache.sim.scenario import RequestSpec
from minicache.sim.timeline import Timeline
from minicache_tui.player import Player, Run

NAMES = [
    ("preempt-and-resume", "hash"),
    ("thrashing", "hash"),
    ("tail-first", "hash"),
    ("two-equal-prompts", "hash"),
    ("radix-split-and-prune", "radix"),
    ("sglang-article", "radix"),
    ("sglang-article", "hash"),
    ("two-equal-prompts", "radix"),
    ("in-batch-order", "radix"),
]
TIMELINES = {f"{name}, {kind}": Timeline.record(find_scenario(name), kind) for name, kind in NAMES}


def one_token_each(name):
    """A scenario in which every answer is one token: requests are hit, computed and over in the same step."""
    scenario = find_scenario(name)
    return replace(scenario, requests=tuple(replace(spec, max_tokens=1) for spec in scenario.requests))


def two_texts(kind="radix"):
    """`ab` runs while `b` parts with it in the middle of a piece of the ribbon."""
    scenario = find_scenario("radix-split-and-prune")
    requests = (
        RequestSpec("ab", (Text("Translate it: good morning"),), 8, step=1),
        RequestSpec("b", (Text("Translate it: thank you"),), 8, step=2),
    )
    return Timeline.record(replace(scenario, requests=requests), kind)


TIMELINES["one token each"] = Timeline.record(one_token_each("two-equal-prompts"), "hash")
TIMELINES["two texts"] = two_texts()
_FORKED = TIMELINES["preempt-and-resume, hash"]
TIMELINES["another block size"] = _FORKED.fork(60, SetBlockSize(2))
TIMELINES["fewer blocks"] = _FORKED.fork(60, ShrinkPool(1))

MOVES = [
    "step",
    "back",
    "next_event",
    "previous_event",
    "next_step",
    "previous_step",
    "next_request",
    "previous_request",
    "continue_",
    "reverse_continue",
    "start",
    "end",
]
POINTS = [
    Breakpoint(kind="BlocksEvicted"),
    Breakpoint(kind="NodesEvicted"),
    Breakpoint(block=3),
    Breakpoint(request="a"),
]
KINDS = ("BlocksAllocated", "TokensSampled", "StepStarted")

moves = st.one_of(
    st.tuples(st.sampled_from(MOVES)),
    st.tuples(st.sampled_from(["run_to", "run_back_to"]), st.sampled_from(Run)),
    st.tuples(st.sampled_from(["next_of", "previous_of"]), st.sampled_from(KINDS)),
    st.tuples(st.just("seek"), st.integers(-5, 160)),
    st.tuples(st.sampled_from(["run", "run back"]), st.integers(1, 12)),
)
walks = st.lists(moves, min_size=1, max_size=12)
runs = st.sampled_from(list(TIMELINES))


def make(playable, move):
    """Make one move; `run` is so many steps."""
    name, *arguments = move
    if name in ("run", "run back"):
        return [getattr(playable, "step" if name == "run" else "back")() for _ in range(arguments[0])][-1]
    return getattr(playable, name)(*arguments)


def cells_of(player):
    return [(player.cells[block], player.cells.sharers(block)) for block in range(len(player.cells))]


def shown(player):
    """All that a screen draws."""
    rows = player.tree() if player.timeline.kind == "radix" else player.chain()
    return {
        "beat": player.beat,
        "cells": cells_of(player),
        "counts": player.cells.counts(),
        "requests": player.requests(),
        "belt": list(islice(player.belt(), 40)),
        "rows": rows,
        "meters": player.meters(),
        "strip": player.strip(33),
        "ribbon": player.ribbon(),
        "sentences": player.sentences(),
        "focus": player.focus_request,
        "facts": player.facts(),
    }


def player_at(timeline, place):
    """A fresh player that has been nowhere else."""
    player = Player(timeline)
    player.seek(place)
    return player
