"""The peak of a process's memory is in bytes."""

from pathlib import Path

from minicache.common.memory import peak_bytes, peak_megabytes


def test_the_peak_is_in_bytes():
    """At least what Linux calls the high water mark, and far from 1,024 times as much."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    marks = [1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:")] or [10_000_000]
    assert 0.99 * marks[0] <= peak_bytes() < 100 * marks[0]


def test_a_megabyte_is_a_million_bytes():
    assert 0.9 < peak_megabytes() * 1e6 / peak_bytes() < 1.1
