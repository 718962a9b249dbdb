"""Play random histories on minicache and on the real engines, and compare them after every operation.

    python -m tests.differential set-up FOLDER                # unpack the wheels and make an interpreter, once
    make differential PEERS=FOLDER                            # all parts: 10,000 histories each, or 20 minutes
    make differential PEERS=FOLDER ARGS="--part tree --seed 7 --count 500"
    python -m tests.differential planted                      # wrong versions of our code: each must be found

Exit status: 0 no difference, 1 a difference, 2 wrong input.
"""

import argparse
import importlib
import sys
import time

from tests.differential.histories import DONE, Part, describe, search

PARTS = {
    "cache": "hash_chain",
    "scheduler": "vllm_steps",
    "tree": "radix_tree",
    "radix": "radix_cache",
    "policies": "policies",
    "admission": "admission",
}


def part_named(name: str) -> Part:
    part: Part = importlib.import_module(f"tests.differential.{PARTS[name]}").PART
    return part


def run(name: str, seed: int, count: int, seconds: float) -> bool:
    """Whether no history of the part showed a difference."""
    part, start = part_named(name), time.monotonic()
    DONE.clear()
    number = -1
    for number, found in enumerate(search(part, seed, count, seconds)):
        if found is not None:
            print(f"DIFFERENT in part {describe(part, seed, number)}")
            return False
    done = ", ".join(f"{value:,} {what}" for what, value in DONE.items())
    print(f"{name:10} {number + 1:,} histories in {time.monotonic() - start:.0f} s: {done}; no difference", flush=True)
    return True


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.differential", description="minicache against the real engines")
    parser.add_argument("--part", choices=PARTS, action="append", help="all, if none is given")
    parser.add_argument("--count", type=int, default=10_000, help="histories of each part")
    parser.add_argument("--seconds", type=float, default=1200, help="the longest time for each part")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    results = [run(name, given.seed, given.count, given.seconds) for name in given.part or PARTS]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
