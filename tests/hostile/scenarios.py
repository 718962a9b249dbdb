"""Scenarios (TOML) and `--set` that a stranger wrote: a built-in scenario with wrong types, sizes, depths and texts."""

from random import Random

from tests.hostile.probe import Probe


def probe(random: Random) -> Probe:
    return Probe(("sim", "run", "a.toml"), {"a.toml": b"title = " + random.choice([b"3", b"'x'"])})
