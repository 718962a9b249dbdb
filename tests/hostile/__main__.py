"""Throw hostile input at the command line, and count what must never come of it.

    python -m tests.hostile --count 5000 --seed 1                # all kinds, in turns
    python -m tests.hostile --count 300 --kind scenarios
    python -m tests.hostile --count 300 --against /other/tree    # another checkout's minicache, with its own .venv
    python -m tests.hostile --replay hostile-faults/scenarios-1-17.json

Each probe with a fault is written to `hostile-faults/`. Exit status: 0 no faults, 1 some, 2 wrong input.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.hostile.kinds import imports, kinds, probe_of
from tests.hostile.probe import LIMIT, Outcome, Probe, faults, prepare, run

COLUMNS = {  # the table's, and the kinds of faults that each counts
    "tracebacks": ("traceback",),
    "status 70": ("status 70",),
    "hangs": ("hang",),
    "controls": ("control",),
    "files": ("files", "executed"),
}
ROOT = Path(__file__).parents[2]
# Another tree's interpreter imports its minicache first, then ours to test it.
BOOT = (
    "import sys, minicache, minicache_tui; sys.path.insert(0, sys.argv.pop(1)); "
    "from tests.hostile.__main__ import main; main()"
)


def main() -> None:
    given = _arguments()
    if given.replay and not given.against:
        sys.exit(_replay(Path(given.replay), given.limit))
    if given.share:
        _work(given)
        sys.exit(0)
    if given.replay:
        arguments = ["--replay", given.replay, "--limit", str(given.limit)]
        sys.exit(subprocess.run([*_python(given.against), *arguments]).returncode)
    found = list(_results(given))
    summary = {kind: _summary([each for each in found if each["kind"] == kind]) for kind in _chosen(given)}
    if given.json:
        print(json.dumps(summary))
    else:
        _print(summary, given.faults)
    sys.exit(any(each["faults"] for each in found))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__.split("\n\n")[0])
    parser.add_argument("--count", type=int, default=1000, help="inputs of all kinds together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", action="append", choices=[*kinds()], help="only this kind; may be repeated")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds after which a run hangs")
    parser.add_argument("--against", type=Path, help="the tree of another minicache, with its .venv")
    parser.add_argument("--faults", type=Path, default=Path("hostile-faults"), help="where probes with faults go")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--replay", metavar="FILE", help="run one probe again")
    parser.add_argument("--share", help=argparse.SUPPRESS)  # 0/2: the even inputs, in this process
    return parser.parse_args()


def _chosen(given: argparse.Namespace) -> list[str]:
    return [name for name in kinds() if not given.kind or name in given.kind]


def _python(against: Path | None) -> list[str]:
    """The beginning of a command that runs this module with our minicache, or with that of another tree."""
    if against is None:
        return [sys.executable, "-m", "tests.hostile"]
    return [str(against.absolute() / ".venv/bin/python"), "-P", "-c", BOOT, str(ROOT)]


def _results(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Run `jobs` processes, each with its share of the inputs, and yield what each input led to."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--json"]
    with ExitStack() as stack:
        results = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(given.jobs)]
        workers = [
            subprocess.Popen([*_python(given.against), *arguments, "--share", f"{job}/{given.jobs}"], stdout=result)
            for job, result in enumerate(results)
        ]
        for worker, result in zip(workers, results, strict=True):
            if worker.wait():
                sys.exit(f"a worker ended with status {worker.returncode}")
            result.seek(0)
            yield from map(json.loads, result)


def _work(given: argparse.Namespace) -> None:
    share, shares = map(int, given.share.split("/"))
    chosen = _chosen(given)
    each = -(-given.count // len(chosen))
    prepare()
    for kind in chosen:
        if more := imports(kinds()[kind]):
            prepare(*more)
        for number in range(share, each, shares):
            probe = probe_of(kind, given.seed, number)
            outcome = run(probe, given.limit)
            found = faults(probe, outcome)
            if found:
                _keep(given.faults / f"{kind}-{given.seed}-{number}.json", probe, found, outcome)
            print(
                json.dumps({"kind": kind, "number": number, "faults": found, "seconds": outcome.cpu_seconds}),
                flush=True,
            )


def _keep(path: Path, probe: Probe, found: list[str], outcome: Outcome) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    ends = {name: getattr(outcome, name)[-2000:].decode(errors="replace") for name in ("stdout", "stderr")}
    path.write_text(json.dumps({"faults": found, "status": outcome.status, **ends, "probe": probe.to_json()}, indent=1))


def _replay(path: Path, limit: float) -> int:
    probe = Probe.from_json(json.loads(path.read_text())["probe"])
    prepare()
    outcome = run(probe, limit)
    print("command:", *map(ascii, probe.argv))
    print("files:  ", *map(ascii, probe.files))
    print("status: ", outcome.status, f"after {outcome.wall_seconds:.1f} s")
    for name in ("stdout", "stderr"):
        print(f"{name}:\n{ascii(getattr(outcome, name)[-4000:].decode(errors='replace'))[1:-1]}".replace("\\n", "\n"))
    found = faults(probe, outcome)
    print("faults: ", *(ascii(each) for each in found or ["none"]), sep="\n  ")
    return bool(found)


def _summary(results: list[dict[str, Any]]) -> dict[str, Any]:
    found = [fault for each in results for fault in each["faults"]]
    counts = Counter(fault.partition(":")[0] for fault in found)
    columns = {column: sum(counts.pop(kind, 0) for kind in of) for column, of in COLUMNS.items()}
    slowest = max((each["seconds"] for each in results), default=0.0)
    return {"inputs": len(results), **columns, "other": sum(counts.values()), "slowest s": slowest, "faults": found}


def _print(summary: dict[str, dict[str, Any]], kept: Path) -> None:
    columns = ["inputs", *COLUMNS, "other", "slowest s"]
    total = {column: sum(row[column] for row in summary.values()) for column in columns[:-1]}
    total["slowest s"] = max(row["slowest s"] for row in summary.values())
    print("| kind |", " | ".join(columns), "|")
    print("|---|" + "---:|" * len(columns))
    for kind, row in [*summary.items(), ("total", total)]:
        cells = [f"{row[column]:,.1f}" if column == "slowest s" else f"{row[column]:,}" for column in columns]
        print(f"| {kind} |", " | ".join(cells), "|")
    for fault, times in Counter(ascii(f)[1:-1][:160] for row in summary.values() for f in row["faults"]).most_common(
        40
    ):
        print(f"{times:5} × {fault}")
    if any(row["faults"] for row in summary.values()):
        print(f"\nAgain: python -m tests.hostile --replay {kept}/FILE")


if __name__ == "__main__":
    main()
