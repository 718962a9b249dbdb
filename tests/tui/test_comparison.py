"""Two in lock-step: neither is ever a step ahead, and each frame is reached from both sides."""

import shlex
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicache.bench.sim import workload
from minicache.sim.breakpoint import Breakpoint
from minicache.sim.errors import BadChange, UnknownThing
from minicache.sim.fork import EditPrompt, SetPolicy
from minicache.sim.library import find_scenario
from minicache.sim.prompt import Segment
from minicache.sim.timeline import Timeline
from minicache_tui.changes import injected
from minicache_tui.comparison import Comparison
from minicache_tui.model.strip import GLYPHS, rank_of
from minicache_tui.player import BEAT_SECONDS, Player, Selection
from minicache_tui.sources import go_to, open_both, open_run
from tests.thinned import several

from .player_runs import make, shown, walks


def edited():
    player = Player(Timeline.record(find_scenario("timestamp-top")))
    player.seek(10)
    return player.fork(EditPrompt("user3", (Segment("other things", 64),)))


def shortened():
    """A fork from before the place where its original was made longer."""
    player = open_run("thrashing")
    player.end()
    longer = injected(player, "one (2): more")
    longer.start()
    return longer.fork(None)


MADE = {
    "kinds": Comparison.of_kinds(find_scenario("two-equal-prompts")),
    "busy": Comparison.of_kinds(workload(6)),
    "policies": Comparison.of_policies(
        Player(Timeline.record(find_scenario("in-batch-order"), "radix")), {"queue_policy": "fcfs"}
    ),
    "fork": Comparison.of_fork(edited()),
    "left is shorter": Comparison.of_policies(open_run("preempt-and-resume"), {"max_num_batched_tokens": 2}),
    "right is shorter": Comparison.of_fork(shortened()),
}


def in_step(comparison):
    """Both are in the same scheduler step, unless a run is over before."""
    steps = []
    for player in (comparison.left, comparison.right):
        steps.append(player.timeline.step_of(player.place))
        if player.at_end:
            steps[-1] = max(steps[-1], comparison.step_now)
    return steps[0] == steps[1] == comparison.step_now


@pytest.mark.parametrize("name", MADE)
def test_every_frame_is_in_step_and_every_stop_of_both_is_in_a_frame(name):
    comparison = MADE[name]
    comparison.start()
    seen = [(comparison.left.place, comparison.right.place)]
    while comparison.step():
        assert in_step(comparison)
        before, now = seen[-1], (comparison.left.place, comparison.right.place)
        assert before[0] <= now[0]
        assert before[1] <= now[1]
        assert before != now
        seen.append(now)
    for side, player in enumerate((comparison.left, comparison.right)):
        assert set(player.beats.stops) <= {places[side] for places in seen}
        assert player.at_end
    back = [seen[-1]]
    while comparison.back():
        back.append((comparison.left.place, comparison.right.place))
    assert back == seen[::-1]


class Model:
    """Pairs of places, in order: every move is a search among them."""

    def __init__(self, comparison):
        self.players = comparison.left, comparison.right
        comparison.start()
        self.pairs = [tuple(player.place for player in self.players)]
        while comparison.step():
            self.pairs.append(tuple(player.place for player in self.players))
        self.last = len(self.pairs) - 1
        self.steps = [max(self.players[i].timeline.step_of(pair[i]) for i in (0, 1)) for pair in self.pairs]

    def passed(self, frame, side):
        """The places that a side comes over on its way to a frame."""
        return range(self.pairs[frame - 1][side] + 1, self.pairs[frame][side] + 1) if frame else range(0)

    def those(self, holds):
        """The frames in which one of the sides comes over a place of which `holds(player, place)`."""
        numbers = range(len(self.pairs))
        return [n for n in numbers if any(holds(p, at) for i, p in enumerate(self.players) for at in self.passed(n, i))]

    def first(self, now, holds, otherwise=None):
        """The first such frame behind this one, else the frame `otherwise`, else this one."""
        return min([n for n in self.those(holds) if n > now], default=now if otherwise is None else otherwise)

    def latest(self, now, holds, otherwise=None):
        return max([n for n in self.those(holds) if n < now], default=now if otherwise is None else otherwise)

    def after(self, now, points, name, *given):
        """The frame to which a move goes from the frame `now`."""

        def of(*kinds):
            return lambda player, place: type(player.timeline.events[place]).__name__ in kinds

        def stops(player, place):
            return any(point.matches(player.timeline.events[place]) for point in points)

        def target(player, place):
            return place in player.beats.targets[given[0]]

        here = self.steps[now]
        match name:
            case "step" | "next_event":
                return min(now + 1, self.last)
            case "back" | "previous_event":
                return max(now - 1, 0)
            case "run":
                return min(now + given[0], self.last)
            case "run back":
                return max(now - given[0], 0)
            case "next_step":
                ends = [n for n in range(self.last + 1) if n == self.last or self.steps[n + 1] > self.steps[n]]
                return min([n for n in ends if n > now], default=now)
            case "previous_step":
                return max([n for n in range(now) if self.steps[n] < here], default=0)
            case "start":
                return 0
            case "end":
                return self.last
            case "next_request":
                return self.first(now, of("RequestArrived"))
            case "previous_request":
                return self.latest(now, of("RequestArrived"))
            case "next_of":
                return self.first(now, of(*given))
            case "previous_of":
                return self.latest(now, of(*given))
            case "run_to":
                return self.first(now, target)
            case "run_back_to":
                return self.latest(now, target)
            case "continue_":
                return self.first(now, stops, self.last)
            case "reverse_continue":
                return self.latest(now, stops, 0)
            case "seek":
                return next((n for n, pair in enumerate(self.pairs) if pair[0] >= given[0]), self.last)
            case "seek_step":
                return next(n for n, step in enumerate(self.steps) if step >= given[0])
            case "scrub":
                return max(0, min(given[0] + 1, self.last))
        raise AssertionError(name)


MODELS = {name: Model(comparison) for name, comparison in MADE.items()}
POINTS = [[Breakpoint(kind="BlocksAdopted")], [Breakpoint(kind="BlocksEvicted"), Breakpoint(block=3)], []]


@given(name=st.sampled_from(list(MADE)), data=st.data(), walk=walks, points=st.sampled_from(POINTS))
def test_every_move_goes_where_a_search_among_all_frames_finds(name, data, walk, points):
    comparison, model = MADE[name], MODELS[name]
    comparison.start()
    comparison.breakpoints = points
    jumps = st.one_of(
        st.tuples(st.just("seek_step"), st.integers(1, model.steps[-1])),
        st.tuples(st.just("scrub"), st.integers(-1, model.last)),
        st.tuples(st.just("seek"), st.integers(-1, model.pairs[-1][0] + 9)),
    )
    for move in walk:
        for each in (data.draw(jumps), move):
            before = comparison.frame
            expected = model.after(before, points, *each)
            moved = make(comparison, each)
            assert (each, comparison.frame) == (each, expected)
            assert (comparison.left.place, comparison.right.place) == model.pairs[expected]
            assert comparison.step_now == model.steps[expected]
            assert comparison.at_end == (expected == model.last)
            if each[0] not in ("run", "run back"):
                assert moved == (expected != before)
    comparison.breakpoints = []


@pytest.mark.parametrize("name", MADE)
def test_the_steps_are_those_of_the_longer_side(name):
    comparison, model = MADE[name], MODELS[name]
    left, right = (player.num_steps for player in (comparison.left, comparison.right))
    assert (left < right, left > right) == (name == "left is shorter", name == "right is shorter")
    longer = max(left, right)
    assert comparison.num_steps == longer == model.steps[-1]
    for step in {1, comparison.left.num_steps, comparison.right.num_steps, longer}:
        comparison.start()
        go_to(comparison, step=step)
        assert comparison.step_now == step
    for step in (0, longer + 1):
        with pytest.raises(UnknownThing, match=f"no step {step}: these two runs have steps 1 to {longer}"):
            go_to(comparison, step=step)


@pytest.mark.parametrize("name", MADE)
def test_a_request_of_either_side_is_gone_to_and_selected_where_it_is(name):
    comparison, model = MADE[name], MODELS[name]
    sides = comparison.left, comparison.right
    for request in {request: None for player in sides for request in player.index.requests}:
        comparison.start()
        go_to(comparison, request=request)

        def arrives(player, place, request=request):
            event = player.timeline.events[place]
            return type(event).__name__ == "RequestArrived" and event.request == request

        assert comparison.frame == min(model.those(arrives))
        for player in sides:
            assert (player.selection == Selection("request", request)) == (request in player.view.requests)
    with pytest.raises(UnknownThing, match="no request 'nobody'"):
        go_to(comparison, request="nobody")


@pytest.mark.parametrize("width", [1, 20, 75, 400])
@pytest.mark.parametrize("name", MADE)
def test_the_strip_has_every_frame_and_shows_what_is_rare_on_either_side(name, width):
    comparison, model = MADE[name], MODELS[name]
    comparison.end()
    cells = comparison.strip(width)
    assert len(cells) == min(width, model.last)
    assert [place for cell in cells for place in range(cell.first, cell.last + 1)] == list(range(model.last))
    for cell in cells:
        events = [
            player.timeline.events[place]
            for side, player in enumerate(model.players)
            for frame in range(cell.first + 1, cell.last + 2)
            for place in model.passed(frame, side)
        ]
        assert cell.glyph == GLYPHS[max(map(rank_of, events))]
        comparison.scrub(cell.first)
        assert [each.contains_place for each in comparison.strip(width)] == [each.first == cell.first for each in cells]
        player, place = comparison.event_at(comparison.shown_in(cell))
        assert place == player.place or comparison.scrub(comparison.shown_in(cell)), "one gets there"
        assert place == player.place
    comparison.start()
    assert not any(cell.contains_place for cell in comparison.strip(width))


@pytest.mark.parametrize(("name", "kind"), several([("two-equal-prompts", "radix"), ("thundering-herd", "hash")]))
def test_two_caches_that_are_compared_from_a_run_can_be_opened_again(name, kind):
    player = open_run(name, kind, ["seed=3"])
    comparison = Comparison.of_kinds(player.timeline.scenario, 1, player.command)
    assert (comparison.num_steps > comparison.left.num_steps) == (name == "thundering-herd")
    while comparison.step():
        words = shlex.split(comparison.permalink)
        assert words[:3] == ["minicache", "tui", name]
        options = dict(zip(words[3::2], words[4::2], strict=True))
        again = open_both(name, [options["--set"]])
        assert options["--cache"] == "both"
        go_to(again, **{where[2:]: int(options[where]) for where in ("--step", "--event") if where in options})
        assert again.step_now == comparison.step_now
        assert again.left.place == comparison.left.place
        assert again.frame <= comparison.frame
        assert comparison.reopening == f"This place again: {comparison.permalink}"


def test_of_what_no_command_opens_it_is_said_and_the_run_that_it_was_made_of_is_named():
    player = open_run("timestamp-top")
    player.seek(20)
    branch = injected(player, "one (2): hello")
    again = injected(branch, "two (2): hello")
    policies = Comparison.of_policies(branch, {"max_num_seqs": 1})
    for made in (branch, again, policies, Comparison.of_fork(branch), Comparison.of_fork(again)):
        assert made.permalink == ""
        assert made.reopening.startswith("No command opens ")
        assert made.reopening.endswith(" its original:\nminicache tui timestamp-top --event 20")
    assert Comparison.of_kinds(player.timeline.scenario).reopening == "No command opens this comparison again."
    assert Player(player.timeline).reopening == "No command opens this run again."


@given(name=st.sampled_from(list(MADE)), walk=walks)
def test_no_move_takes_one_side_a_step_ahead(name, walk):
    comparison = MADE[name]
    comparison.start()
    comparison.breakpoints = [Breakpoint(kind="BlocksAdopted")]
    for move in walk:
        before = comparison.frame
        assert make(comparison, move) is not None
        assert in_step(comparison) or comparison.frame == 0
        if move[0] == "step" and comparison.frame == before:
            assert comparison.at_end
    for player in (comparison.left, comparison.right):
        fresh = Player(player.timeline, parent=player)
        fresh.seek(player.place)
        assert shown(player) == shown(fresh)


def test_runs_to_the_first_of_both_sides_and_stops_at_breakpoints_of_either():
    comparison = MADE["kinds"]
    comparison.start()
    comparison.breakpoints = [Breakpoint(kind="BlocksAdopted")]
    assert comparison.continue_()
    places = comparison.left.place, comparison.right.place
    assert type(comparison.left.current).__name__ == "BlocksAdopted"
    comparison.end()
    while comparison.reverse_continue() and comparison.frame:
        last = comparison.left.place, comparison.right.place
    assert last == places


@pytest.mark.parametrize("name", MADE)
def test_next_and_previous_of_a_kind_are_the_nearest_frames_that_come_over_it(name):
    comparison = MADE[name]
    kinds = ("BlocksAdopted", "RequestFinished")
    comparison.start()
    frames = [(comparison.left.place, comparison.right.place)]
    while comparison.step():
        frames.append((comparison.left.place, comparison.right.place))
    right = []
    for number, (before, now) in enumerate(pairwise(frames), 1):
        for side, player in enumerate((comparison.left, comparison.right)):
            passed = player.timeline.events[before[side] + 1 : now[side] + 1]
            if any(type(event).__name__ in kinds for event in passed) and number not in right:
                right.append(number)
    comparison.start()
    found = []
    while comparison.next_of(*kinds):
        found.append(comparison.frame)
    assert found == right
    comparison.end()
    found = []
    while comparison.previous_of(*kinds):
        found.append(comparison.frame)
    assert found == [number for number in reversed(right) if number < len(frames) - 1]


def test_a_fork_with_another_strategy_names_it_from_there_on():
    player = Player(Timeline.record(find_scenario("radix-split-and-prune"), "radix"))
    player.go_to_request("third")
    branch = player.fork(SetPolicy({"strategy": "mru"}))
    assert branch.facts().endswith("mru")
    branch.start()
    assert branch.facts().endswith("lru")


def test_plays_frame_by_frame_and_stops_at_a_breakpoint():
    comparison = MADE["kinds"]
    comparison.start()
    comparison.breakpoints = [Breakpoint(kind="BlocksAdopted")]
    comparison.playing = True
    assert comparison.advance(BEAT_SECONDS)
    assert comparison.frame == 1
    assert comparison.advance(BEAT_SECONDS * 100)
    assert not comparison.playing
    assert type(comparison.left.current).__name__ == "BlocksAdopted"


def test_rates_are_those_up_to_here_and_totals_those_of_the_whole_runs():
    fork = Comparison.of_fork(edited())
    fork.start()
    assert fork.rates == ("–", "–")
    totals = fork.totals
    fork.end()
    assert fork.rates == totals
    assert all(total.endswith(" %") for total in totals)


def test_two_caches_are_compared_from_the_step_on_at_which_one_was():
    scenario = find_scenario("timestamp-top")
    assert Comparison.of_kinds(scenario).place == -1
    for step in (1, 5, 10**6):
        comparison = Comparison.of_kinds(scenario, step)
        assert comparison.step_now == min(step, comparison.num_steps)
    assert comparison.labels == ("hash chain, blocks of 16", "radix tree, blocks of 1")


def test_the_parting_is_told_with_the_names_of_both():
    assert MADE["kinds"].parting.sentence == (
        "In step 1 the hash chain finds 32 tokens of user2, the radix tree finds 0 tokens of user2."
    )
    fork = MADE["fork"]
    assert fork.labels == ("the original", "the fork: the prompt of user3 is edited")
    assert fork.brief == fork.names == ("the original", "the fork")
    assert fork.parting.request == "user3"
    assert "the original" in fork.parting.sentence
    policies = MADE["policies"]
    assert policies.labels == ("as it is", "queue_policy = fcfs")
    assert policies.parting.what.startswith("the run as it is finds ")
    assert ", the one with queue_policy = fcfs " in policies.parting.what
    same = Comparison.of_policies(Player(Timeline.record(find_scenario("tail-first"))), {"max_num_seqs": 200})
    assert same.parting is None


def test_a_fork_begins_at_the_step_boundary_and_leaves_its_parent_alone():
    player = Player(Timeline.record(find_scenario("timestamp-top")))
    player.seek(10)
    player.breakpoints = [Breakpoint(block=3)]
    before = shown(player)
    branch = player.fork(SetPolicy({"max_num_seqs": 2}))
    assert branch.parent is player
    assert branch.breakpoints == player.breakpoints
    assert branch.breakpoints is not player.breakpoints
    assert branch.place == player.timeline.next(-1, "StepFinished")
    assert branch.timeline.events[: branch.place] == player.timeline.events[: branch.place]
    assert shown(player) == before
    with pytest.raises(BadChange, match="no fork"):
        Comparison.of_fork(player)


def test_a_forked_prompt_is_labelled_as_it_was_edited():
    branch = edited()
    branch.go_to_request("user3")
    assert branch.ribbon("user3").blocks[0].text == "other things 0–15"
