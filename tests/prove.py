"""Look for a case that breaks a law until the time is up: `make prove BUDGET=10m`.

    python -m tests.prove --budget 10m            # the laws in turns, with new random cases each time
    python -m tests.prove --replay FILE           # run a failure again

The cases are those of the property tests, under hypothesis's `nightly` profile: answers with a cache against answers
without, and histories of calls under the laws of the core. A case that breaks a law is made as small as hypothesis can
make it within a minute, and written to `proof-failures/` with its requests, its settings and the first event at which
the two runs differ.

Exit status: 0 all laws held, and things happened that they are about; 1 otherwise; 2 wrong input; 130 interrupted.
"""

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import hypothesis
from hypothesis import HealthCheck, Phase, strategies

import tests.conftest  # the profiles, and one thread a process: before torch is loaded  # noqa: F401

# isort: split
import torch

from tests.properties.cases import Broken, Case, answers, case_from_json, core, eventful_case

EXAMPLES_A_TURN, SECONDS_A_TURN = 40, 5
SECONDS_TO_SHRINK = 60
SEEN = ("hits", "evictions", "preemptions", "shared blocks")
UNITS = {"s": 1, "m": 60, "h": 3600}


@dataclass
class Law:
    """What is to hold for all `cases`, and how it has fared. `broken` is the smallest case that breaks it."""

    name: str
    cases: strategies.SearchStrategy[Case]
    first: Case | None = None
    examples: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    broken: tuple[Case, Broken] | None = None

    def turn(self, seed: int, until: float, shrink: float, progress: "Progress") -> None:
        """Try up to `EXAMPLES_A_TURN` cases, none after the moment `until`; a broken one is shrunk for `shrink` s."""

        def hold(case: Case) -> None:
            nonlocal until
            if time.monotonic() > until:
                return
            try:
                self.seen.update(case.hold())
            except Broken as broken:
                if self.broken is None:
                    until = time.monotonic() + shrink
                if self.broken is None or size(case) <= size(self.broken[0]):
                    self.broken = case, broken
                raise
            self.examples += 1
            progress.tell()

        profile = hypothesis.settings.get_profile("nightly")
        settings = hypothesis.settings(
            profile,
            max_examples=EXAMPLES_A_TURN,
            database=None,
            derandomize=False,
            phases=[Phase.generate, Phase.shrink],
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        )
        test = hypothesis.seed(seed)(settings(hypothesis.given(self.cases)(hold)))
        if self.first is not None:
            first, self.first = self.first, None
            with suppress(Broken):  # hypothesis makes no given case smaller: go on to a random one, which it does
                hold(first)
        try:
            test()
        except Exception:
            if self.broken is None:  # else: it is what was looked for, or shrinking ran out of time
                raise


def size(case: Case) -> int:
    return len(json.dumps(case.to_json()))


def all_laws() -> list[Law]:
    laws = [Law(f"answers, {kind}", answers(kind), eventful_case(kind)) for kind in ("hash", "radix")]
    for world in ("cache", "serving"):
        laws += [Law(f"core, {world}, {kind}", core(world, kind)) for kind in ("hash", "radix")]
    return laws


class Progress:
    """One line that says how far it is: rewritten each second on a terminal, else written each half minute."""

    def __init__(self, laws: list[Law], budget: float) -> None:
        self.laws, self.budget = laws, budget
        self.started = self.told = time.monotonic()
        self.on_terminal = sys.stderr.isatty()

    def tell(self) -> None:
        now = time.monotonic()
        if now - self.told < (1 if self.on_terminal else 30):
            return
        self.told = now
        line = f"{now - self.started:,.0f} of {self.budget:,.0f} s: {summary(self.laws)}"
        print(f"\r{line}\033[K" if self.on_terminal else line, end="" if self.on_terminal else "\n", file=sys.stderr)

    def end(self) -> None:
        if self.on_terminal:
            print("\r\033[K", end="", file=sys.stderr)


def prove(laws: list[Law], budget: float, seed: int, shrink: float = SECONDS_TO_SHRINK) -> None:
    """Give each law that is not broken its turn until `budget` seconds are over."""
    progress = Progress(laws, budget)
    seeds, end = random.Random(seed), progress.started + budget
    seconds = min(SECONDS_A_TURN, budget / len(laws))
    try:
        for law in in_turns(laws, end):
            law.turn(seeds.getrandbits(64), min(end, time.monotonic() + seconds), shrink, progress)
    finally:
        progress.end()


def in_turns(laws: list[Law], until: float) -> Iterator[Law]:
    while any(law.broken is None for law in laws):
        for law in laws:
            if time.monotonic() > until:
                return
            if law.broken is None:
                yield law


def summary(laws: list[Law]) -> str:
    seen = sum((law.seen for law in laws), Counter())
    return ", ".join([f"{sum(law.examples for law in laws):,} examples", *(f"{seen[what]:,} {what}" for what in SEEN)])


def report(laws: list[Law], folder: Path) -> int:
    """Print what was seen, write what broke; returns the exit status."""
    print(f"{'law':<22}" + "".join(f"{heading:>15}" for heading in ("examples", *SEEN)))
    for law in laws:
        print(f"{law.name:<22}" + "".join(f"{n:>15,}" for n in (law.examples, *(law.seen[what] for what in SEEN))))
    print(f"in all: {summary(laws)}")
    for law in laws:
        if law.broken is not None:
            case, broken = law.broken
            print(f"\n{law.name} is broken: {broken}\n  {write(folder, law.name, case, broken)}")
    if any(law.broken for law in laws):
        return 1
    missing = [what for what in SEEN if not any(law.seen[what] for law in laws)]
    if missing:
        print(f"There were no {', '.join(missing)}: that nothing broke means little. Give a larger budget.")
        return 1
    print("All laws held.")
    return 0


def write(folder: Path, name: str, case: Case, broken: Broken) -> Path:
    """A new file in `folder`, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    slug = name.replace(", ", "-")
    path = next(path for n in range(1, 10**6) if not (path := folder / f"{slug}-{n}.json").exists())
    path.write_text(readable(case.to_json() | {"first_difference": broken.report}) + "\n")
    return path


def readable(value: object, indent: str = "", width: int = 120) -> str:
    """JSON in which a list or object that fits on a line is on one."""
    line = json.dumps(value)
    if not isinstance(value, dict | list) or len(indent) + len(line) <= width:
        return line
    inner = f"{indent}  "
    if isinstance(value, dict):
        parts = [f"{inner}{json.dumps(name)}: {readable(part, inner, width)}" for name, part in value.items()]
    else:
        parts = [f"{inner}{readable(part, inner, width)}" for part in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n" + ",\n".join(parts) + f"\n{indent}{closing}"


def replay(path: Path) -> int:
    """Run the case of a file again; returns the exit status."""
    try:
        case = case_from_json(json.loads(path.read_text()))
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"{path} is not a file that `make prove` wrote: {error}", file=sys.stderr)
        return 2
    try:
        seen = case.hold()
    except Broken as broken:
        print(readable(broken.report))
        print(f"still broken: {broken}")
        return 1
    print(f"The law holds for this case now: {dict(seen)}")
    return 0


def duration(text: str) -> float:
    """Seconds of `90s`, `10m` or `1h`."""
    found = re.fullmatch(r"(\d+)([smh])", text)
    if not found or not int(found[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration: write 90s, 10m or 1h")
    return int(found[1]) * UNITS[found[2]]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.prove", description="Look for a case that breaks a law.")
    parser.add_argument("--budget", type=duration, default="10m", help="how long to look: 90s, 10m, 1h")
    parser.add_argument("--seed", type=int, default=None, help="of the random cases; a new one if not given")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run a case that was written before")
    parser.add_argument("--out", type=Path, default=Path("proof-failures"), metavar="FOLDER")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    if chosen.replay:
        return replay(chosen.replay)
    seed = random.SystemRandom().getrandbits(32) if chosen.seed is None else chosen.seed
    print(f"seed {seed}, for {chosen.budget:,.0f} s")
    laws, status = all_laws(), 0
    try:
        prove(laws, chosen.budget, seed)
    except KeyboardInterrupt:
        status = 130
    return report(laws, chosen.out) or status


if __name__ == "__main__":
    sys.exit(main())
