"""What two runs in lock-step are compared for: what each is called, what both find, where they part."""

import shlex
from bisect import bisect_right
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from minicache.sim.errors import BadChange, UnknownThing
from minicache.sim.fork import SetPolicy
from minicache.sim.lock_step import NAMES, Parting, partings, run_both
from minicache.sim.scenario import CACHE_NAMES, Scenario
from minicache.sim.words import closing_words

from .lock_step import LockStep
from .player import Player


class Comparison(LockStep):
    """Two in lock-step, with what they are called: `labels` in titles, the `brief` ones where there is little room, and
    `names` in sentences."""

    def __init__(
        self,
        left: Player,
        right: Player,
        labels: tuple[str, str],
        names: tuple[str, str],
        brief: tuple[str, str] | None = None,
    ) -> None:
        super().__init__(left, right)
        self.labels = labels
        self.brief = brief or labels
        self.names = names
        self.command = ""  # that opens both at their beginning
        self.made_of: Player | None = None  # the run from which the comparison was asked for

    @classmethod
    def of_kinds(cls, scenario: Scenario, step: int = 0, command: str = "") -> "Comparison":
        """The hash chain against the radix tree, on one clock, at the end of a step. `command` opens one of them.
        Raises as `run_both` does."""
        timelines = run_both(scenario)
        left, right = Player(timelines["hash"]), Player(timelines["radix"])
        brief = CACHE_NAMES["hash"], CACHE_NAMES["radix"]
        sizes = (player.timeline.settings["block_size"] for player in (left, right))
        labels = [f"{name}, blocks of {size}" for name, size in zip(brief, sizes, strict=True)]
        comparison = cls(left, right, (labels[0], labels[1]), (NAMES["hash"], NAMES["radix"]), brief)
        comparison.command = of_both(command)
        comparison._go(bisect_right(comparison._steps, step) - 1 if step else 0)
        return comparison

    @classmethod
    def of_policies(cls, player: Player, settings: Mapping[str, Any]) -> "Comparison":
        """The run as it is against the run with other settings from its beginning. Raises `BadChange`."""
        change = SetPolicy(settings)
        left = Player(player.timeline, decode=player.decode)
        right = Player(player.timeline.fork_from_start(change), decode=player.decode)
        left.seek(player.place)
        left.name = right.name = player.name
        names = ("the run as it is", f"the one with {change.describe()}")
        comparison = cls(left, right, ("as it is", change.describe()), names)
        comparison.made_of = player
        return comparison

    @classmethod
    def of_fork(cls, player: Player) -> "Comparison":
        """The original against the fork. Raises `BadChange` for a player that is no fork."""
        if player.parent is None:
            raise BadChange("this run is no fork: fork it first (f), then compare (m)")
        left = Player(player.parent.timeline, decode=player.decode)
        right = Player(player.timeline, decode=player.decode)
        left.name = right.name = player.name
        names = ("the original", "the fork")
        labels = ("the original", f"the fork: {player.difference}")
        comparison = cls(left, right, labels, names, names)
        comparison.made_of = player
        comparison._go(bisect_right(comparison._rights, player.place) - 1)
        return comparison

    @property
    def title(self) -> str:
        return " and ".join(self.labels)

    @property
    def name(self) -> str:
        return self.left.name

    @property
    def permalink(self) -> str:
        """The command that comes back to the first frame with this place of the left side, or with this step where only
        the right one has come so far; empty where none does."""
        if not self.command:
            return ""
        if self.step_now > self.left.num_steps:
            return f"{self.command} --step {self.step_now}"
        return f"{self.command} --event {self.place}"

    @property
    def reopening(self) -> str:
        """How to come back to this, in a sentence."""
        if self.permalink:
            return f"This place again: {self.permalink}"
        link = self.made_of.origin.permalink if self.made_of is not None else ""
        if not link:
            return "No command opens this comparison again."
        return f"No command opens this comparison again; its original:\n{link}"

    @cached_property
    def parting(self) -> Parting | None:
        """Where the two first treat a request differently; None if they never do. Reads both runs."""
        left, right = self.names
        found = partings(
            {"hash": self.left.timeline, "radix": self.right.timeline}, names={"hash": left, "radix": right}
        )
        return found[0] if found else None

    @property
    def rates(self) -> tuple[str, str]:
        """The hit rates of both up to here."""
        return _percent(self.left, self.left.place), _percent(self.right, self.right.place)

    @property
    def totals(self) -> tuple[str, str]:
        """The hit rates of both at the end of their runs."""
        return _percent(self.left, len(self.left.timeline) - 1), _percent(self.right, len(self.right.timeline) - 1)

    @property
    def says_the_same(self) -> bool:
        """Whether there is the same to say of both sides: what happened last, or of what is selected."""
        return _words(self.left) == _words(self.right)


def of_both(command: str) -> str:
    """The command that opens both caches, from one that opens a scenario over one of them."""
    words = shlex.split(command)
    if "--cache" in words:
        at = words.index("--cache")
        del words[at : at + 2]
    return shlex.join([*words, "--cache", "both"]) if words else ""


def _words(player: Player) -> tuple[object, ...]:
    """What there is to say of a run at its place."""
    if player.selection.kind != "nothing":
        try:
            return (player.explain(),)
        except UnknownThing as error:
            return (str(error),)
    if player.place < 0:
        return (player.story(),)
    told = [(account.step, account.sentence, account.rule) for account in player.sentences()]
    return (*told, closing_words(player.index) if player.at_end else "")


def _percent(player: Player, place: int) -> str:
    rate = player.timeline.hit_rate(place)
    return "–" if rate is None else f"{100 * rate:.1f} %"
