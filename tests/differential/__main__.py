"""Play random histories on minicache and on the real engines, and compare them after every operation.

    python -m tests.differential.set_up FOLDER           # unpack the wheels and make an interpreter, once
    make differential PEERS=FOLDER                       # all parts: 10,000 histories each, or 20 minutes
    make differential PEERS=FOLDER ARGS="--part tree --seed 7 --count 500"
    make differential PEERS=FOLDER ARGS=--planted        # wrong versions of our code: each must be found

Exit status: 0 no difference, 1 a difference, a part that this release cannot run, or a planted fault that was not
found, 2 wrong input.
"""

import argparse
import importlib
import sys
import time

from tests.differential.histories import DONE, Differs, Part, describe, search
from tests.differential.set_up import VERSIONS, version_in
from tests.differential.stubs import folder

PARTS = {
    "cache": "hash_chain",
    "scheduler": "vllm_steps",
    "tree": "radix_tree",
    "radix": "radix_cache",
    "policies": "policies",
    "admission": "admission",
}
NOT_RUN = {
    "SGLang's scheduler loop": "its processes and a model runner, so a GPU; `admission` follows it with its real parts",
    "the order of SGLang's free slots": "SGLang's order in our pool; a deviation, so both are given the same slots",
    "vLLM's asynchronous scheduling, speculative decoding, several kinds of layers": "features that minicache lacks",
    "the host tiers of both": "a host tier here",
}


def part_named(name: str) -> Part:
    part: Part = importlib.import_module(f"tests.differential.{PARTS[name]}").PART
    return part


def run(name: str, seed: int, count: int, seconds: float) -> bool:
    """Whether the part runs, and no history of it shows a difference."""
    try:
        part = part_named(name)
    except Exception as error:  # whatever a release has changed
        print(f"{name:10} cannot be run with this release: {type(error).__name__}: {error}")
        return False
    DONE.clear()
    start, number = time.monotonic(), -1
    for number, found in enumerate(search(part, seed, count, seconds)):
        if found is not None:
            kind = "DIFFERENT" if isinstance(found.error, Differs) else "ERROR (a call that this release has changed?)"
            print(f"{name:10} {kind}: {describe(part, seed, number)}", flush=True)
            return False
    done = ", ".join(f"{value:,} {what}" for what, value in sorted(DONE.items()))
    print(f"{name:10} no difference in {number + 1:,} histories, {time.monotonic() - start:.0f} s: {done}", flush=True)
    return True


def run_planted(seed: int) -> bool:
    """Whether every planted fault is found."""
    from tests.differential.planted import COUNT, FAULTS, SECONDS, planted

    results = []
    for fault in FAULTS:
        part = part_named(fault.part)
        with planted(fault):
            histories = search(part, seed, COUNT, SECONDS)
            number, found = next(((n, found) for n, found in enumerate(histories, start=1) if found), (0, None))
        results.append(found is not None)
        where = f"found in history {number:,} ({found.kind})" if found else "NOT FOUND"
        print(f"{fault.part:10} {fault.mistake:45} {where}", flush=True)
    print(f"{sum(results)} of {len(results)} planted faults found")
    return all(results)


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.differential", description="minicache against the real engines")
    parser.add_argument("--part", choices=PARTS, action="append", help="all, if none is given")
    parser.add_argument("--count", type=int, default=10_000, help="histories of each part")
    parser.add_argument("--seconds", type=float, default=1200, help="the longest time for each part")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--planted", action="store_true", help="plant wrong versions of our code instead")
    given = parser.parse_args()
    for name, followed in VERSIONS.items():
        found = version_in(name, folder())
        print(f"{name} {found}" + (f" (minicache follows {followed})" if found != followed else ""))
    if given.planted:
        sys.exit(0 if run_planted(given.seed) else 1)
    results = [run(name, given.seed, given.count, given.seconds) for name in given.part or PARTS]
    if not given.part:
        print("\nNot run, and what it would need:")
        for what, needed in NOT_RUN.items():
            print(f"* {what}: {needed}")
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
