"""The laws bite: every wrong version of the core that has a name is broken by at least one of them.

`pytest -s tests/core/test_mutants.py` prints the table. `x` is a law that broke: it does not hold, or can make no sense
of what it sees. `!` means that the wrong version also ran into an error of its own, which counts for nothing here.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.core.laws import EXPERIMENTS, LAWS, WATCHERS, fixed_histories
from tests.core.mutants import MUTANTS, Mutant
from tests.core.world import HASH, RADIX, Guard, Subject, Watcher

CRASH = "!"


class Recorder(Guard):
    """Writes down which laws break, and goes on with the others."""

    def __init__(self) -> None:
        self.broken: set[str] = set()

    def __call__(self, law: Watcher, moment: Callable[..., None], *args: Any) -> None:
        if type(law).__name__ in self.broken:
            return
        try:
            moment(*args)
        except (Exception, pytest.fail.Exception):
            self.broken.add(type(law).__name__)


def broken_laws(subject: Subject, num_histories: int = 3) -> set[str]:
    """The laws that break in the first fixed histories, or, where none does, in any of them."""
    recorder = Recorder()
    for name, experiment in EXPERIMENTS.items():
        try:
            experiment(subject)
        except AssertionError:
            recorder.broken.add(name)
        except Exception:
            recorder.broken.add(CRASH)
    for world in ("cache", "serving"):
        for number, history in enumerate(fixed_histories(world, subject.kind)):
            if number >= num_histories and recorder.broken - {CRASH}:
                break
            try:
                history.run(*WATCHERS, subject=subject, guard=recorder)
            except Exception:
                recorder.broken.add(CRASH)
    return recorder.broken


@pytest.fixture(scope="module")
def table():
    rows: dict[str, set[str]] = {}
    yield rows
    print()
    for number, name in enumerate(LAWS):
        print(f"  {chr(ord('A') + number)}  {name}")
    for mistake, broken in rows.items():
        marks = "".join("x" if name in broken else "." for name in LAWS)
        print(f"  {marks} {CRASH if CRASH in broken else ' '} {mistake}")


@pytest.mark.parametrize("subject", [HASH, RADIX], ids=lambda subject: subject.kind)
def test_the_original_breaks_no_law(subject):
    assert broken_laws(subject, num_histories=8) == set()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.mistake)
def test_each_mutant_breaks_the_law_that_is_there_for_it(mutant: Mutant, table):
    table[mutant.mistake] = broken_laws(mutant.subject)
    assert mutant.law in table[mutant.mistake]


def test_every_law_is_there_for_something():
    """A law that no mutant breaks may be true of anything."""
    assert {mutant.law for mutant in MUTANTS} == LAWS.keys()
