"""The laws bite: every mutant of the core breaks at least one of them.

`pytest -s -m nightly tests/core/test_mutants.py` prints the table. `x` is a law that failed, or that could not read the
state. `!` means that the mutant also raised an error of its own, which does not count.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.core.laws import EXPERIMENTS, LAWS, WATCHERS, fixed_histories
from tests.core.mutants import MUTANTS, Mutant
from tests.core.world import HASH, RADIX, Guard, Subject, Watcher

CRASH = "!"


class Recorder(Guard):
    """Writes down which laws break, and goes on with the others, until the law `until` has broken."""

    def __init__(self, until: str) -> None:
        self.broken: set[str] = set()
        self.until = until

    def __call__(self, law: Watcher, moment: Callable[..., None], *args: Any) -> None:
        if type(law).__name__ in self.broken:
            return
        try:
            moment(*args)
        except (Exception, pytest.fail.Exception):
            self.broken.add(type(law).__name__)
            if self.until in self.broken:
                raise


def broken_laws(subject: Subject, num_histories: int = 3, until: str = "") -> set[str]:
    """The laws that break in the first fixed histories, or, where none does, in any of them.

    Stops when the law `until` has broken.
    """
    recorder = Recorder(until)
    for name, experiment in EXPERIMENTS.items():
        if until in LAWS and name != until:
            continue
        try:
            experiment(subject)
        except AssertionError:
            recorder.broken.add(name)
        except Exception:
            recorder.broken.add(CRASH)
    for world in ("cache", "serving"):
        for number, history in enumerate(fixed_histories(world, subject.kind)):
            if until in recorder.broken or (number >= num_histories and recorder.broken - {CRASH}):
                break
            try:
                history.run(*WATCHERS, subject=subject, guard=recorder)
            except (Exception, pytest.fail.Exception):
                recorder.broken.add(CRASH)
    return recorder.broken


@pytest.mark.parametrize("subject", [HASH, RADIX], ids=lambda subject: subject.kind)
def test_the_original_breaks_no_law(subject):
    assert broken_laws(subject, num_histories=8) == set()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.mistake)
def test_each_mutant_breaks_the_law_that_is_there_for_it(mutant: Mutant):
    assert mutant.law in broken_laws(mutant.subject, until=mutant.law)


@pytest.mark.nightly
def test_which_laws_each_mutant_breaks():
    rows = {mutant.mistake: broken_laws(mutant.subject) for mutant in MUTANTS}
    print()
    for number, name in enumerate(LAWS):
        print(f"  {chr(ord('A') + number)}  {name}")
    for mistake, broken in rows.items():
        marks = "".join("x" if name in broken else "." for name in LAWS)
        print(f"  {marks} {CRASH if CRASH in broken else ' '} {mistake}")
    assert all(mutant.law in rows[mutant.mistake] for mutant in MUTANTS)


def test_every_law_is_there_for_something():
    """A law that no mutant breaks may be true of anything."""
    assert {mutant.law for mutant in MUTANTS} == LAWS.keys()
