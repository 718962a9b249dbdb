"""Named wrong versions of the engine and the kernels; a law must fail for each: `make mutants`.

Each is one changed line in a copy of the source, against which the tests that state its law run twice: with the cases
that are written down, which are the same on every machine, and with those that hypothesis searches for. If the written
cases all pass, the mutant survives and the exit status is 1; the same holds if the search passes and the law is one of
`tests/properties`. The core has its own table (`tests/core/mutants.py`), which runs with it.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SEARCHES = ("-m", "hypothesis")  # the tests that search, by the marker that hypothesis gives them
TIMEOUT = 600  # seconds: a mutant that never ends is noticed, too, and no machine is so slow


@dataclass(frozen=True)
class Mutant:
    """`old` stands once in `file` and becomes `new`; `tests` (pytest's arguments) state the `law`."""

    name: str
    law: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def must_be_found(self) -> bool:
        """Whether a search must kill it, too: laws outside `tests/properties` are held against chosen cases first."""
        return all(test.startswith("tests/properties/") for test in self.tests)


TRANSPARENT = ("tests/properties/engine/test_cached_equals_uncached.py",)
ATTENTION = ("tests/engine/test_attention.py",)
EXACT = ("tests/properties/engine/test_exact_mode.py",)
EXACT_TRITON = ("tests/kernels/test_exact_mode.py",)
PAGED = ("tests/kernels/test_paged_attention.py",)
DECODE = ("tests/kernels/test_paged_decode.py",)
STORE = ("tests/kernels/test_store_kv.py",)
ENGINE = "minicache/engine/"
KERNELS = ENGINE + "kernels/"

MUTANTS = [
    Mutant(
        "position restarts at 0 after a hit",
        "cached equals uncached",
        ENGINE + "attention.py",
        "positions.append(at)",
        "positions.append(at - start)",
        TRANSPARENT,
    ),
    Mutant(
        "RoPE of the chunk instead of the sequence",
        "cached equals uncached",
        ENGINE + "model.py",
        "self.rotary.at(batch.positions)",
        "self.rotary.at(batch.positions - batch.positions.min())",
        TRANSPARENT,
    ),
    Mutant(
        "KV written after attention",
        "same-step sharing reads what is computed in this step",
        ENGINE + "model.py",
        "            attention.store(k, v, k_cache, v_cache, batch.slots)\n"
        "            attended = attention(q, k_cache, v_cache, batch)  # (T, Hq, D)\n",
        "            attended = attention(q, k_cache, v_cache, batch)  # (T, Hq, D)\n"
        "            attention.store(k, v, k_cache, v_cache, batch.slots)\n",
        TRANSPARENT,
    ),
    Mutant(
        "slot of the null block written",
        "cached equals uncached",
        ENGINE + "attention.py",
        "slots.append(blocks[at // block_size] * block_size + at % block_size)",
        "slots.append(blocks[at // block_size] * 0 + at % block_size)",
        TRANSPARENT,
    ),
    Mutant(
        "stale KV after preemption",
        "cached equals uncached",
        "minicache/core/hash_chain_cache.py",
        "        for block in uncomputed:\n            self.pool.unpublish(block)\n",
        "        for block in uncomputed:\n            pass\n",
        TRANSPARENT,
    ),
    Mutant(
        "a draw that does not depend on the position",
        "samples are independent of the batch",
        ENGINE + "sampler.py",
        'f"{seed}:{position}"',
        'f"{seed}"',
        ("tests/engine/test_sampler.py",),
    ),
    Mutant(
        "causal mask off by one, torch",
        "torch's attention equals the reference",
        ENGINE + "attention.py",
        "positions > positions[sequence.start :, None]",
        "positions > positions[sequence.start :, None] + 1",
        ATTENTION,
    ),
    Mutant(
        "values of another block, torch",
        "torch's attention equals the reference",
        ENGINE + "attention.py",
        "v[sequence.block_table].flatten(0, 1)[: sequence.context]",
        "v[sequence.block_table.roll(1)].flatten(0, 1)[: sequence.context]",
        ATTENTION,
    ),
    Mutant(
        "last block unmasked",
        "the attention of a CPU equals the reference",
        ENGINE + "fast_cpu/attention.py",
        "positions >= contexts",
        "positions >= contexts + block_size",
        ATTENTION,
    ),
    Mutant(
        "causal mask off by one",
        "the attention of a CPU equals the reference",
        ENGINE + "fast_cpu/attention.py",
        ".triu(start + top + 1)",
        ".triu(start + top + 2)",
        ATTENTION,
    ),
    Mutant(
        "wrong K/V head for a query head",
        "the attention of a CPU equals the reference",
        ENGINE + "fast_cpu/attention.py",
        "q[rows].unflatten(1, (keys.shape[1], -1)).permute(2, 1, 0, 3)",
        "q[rows].unflatten(1, (-1, keys.shape[1])).permute(1, 2, 0, 3)",
        ATTENTION,
    ),
    Mutant(
        "block table row of another request",
        "the attention of a CPU equals the reference",
        ENGINE + "fast_cpu/attention.py",
        "[s.block_table for s in sequences]",
        "[s.block_table for s in reversed(sequences)]",
        ATTENTION,
    ),
    Mutant(
        "keys of a tile end where nothing is written yet",
        "exact mode: shapes depend on position alone",
        ENGINE + "exact.py",
        "    num_keys = tile.start + size\n",
        "    num_keys = len(tile.slots)\n",
        EXACT,
    ),
    Mutant(
        "rows of a tile that are not computed now are left out",
        "exact mode: the same bits however a prompt was computed",
        ENGINE + "exact.py",
        "        return torch.cat(found)\n",
        "        kept = rows[0].flatten(1).abs().sum(1) > 0\n"
        "        some = op(*(part[kept] for part in rows))\n"
        "        whole = torch.cat(found)\n"
        "        if len(some) == int(kept.sum()):\n"
        "            whole[kept] = some\n"
        "        return whole\n",
        EXACT,
    ),
    Mutant(
        "tiles begin where the chunk begins",
        "exact mode: shapes depend on position alone",
        ENGINE + "exact.py",
        "range(sequence.start // size * size, sequence.context, size)",
        "range(sequence.start, sequence.context, size)",
        EXACT,
    ),
    Mutant(
        "tile walked by cache block",
        "exact mode on Triton: the same bits however a prompt was computed",
        KERNELS + "paged_attention.py",
        "range(0, end, KEYS):\n        key = first_key + tl.arange(0, KEYS)\n",
        "range(0, end, BLOCK if BLOCK < KEYS else KEYS):\n"
        "        key = tl.arange(0, KEYS)\n"
        "        key = tl.where(key < BLOCK, first_key + key, 1 << 30)\n",
        EXACT_TRITON,
    ),
    Mutant(
        "tiles of queries begin where the chunk begins, paged_attention",
        "exact mode on Triton: a row's place in its tile is that of its position",
        KERNELS + "paged_attention.py",
        "aligned=exact_tile is not None",
        "aligned=False",
        EXACT_TRITON,
    ),
    Mutant(
        "smaller tiles for a batch of decodes, paged_attention",
        "exact mode on Triton: what is launched depends on the model alone",
        KERNELS + "paged_attention.py",
        "decode=layout.single_rows and not exact_tile",
        "decode=layout.single_rows",
        EXACT_TRITON,
    ),
    Mutant(
        "decodes by paged_decode in exact mode",
        "exact mode on Triton: the same bits however a prompt was computed",
        KERNELS + "triton_attention.py",
        "if self._layout.single_rows and not self.exact_tile:",
        "if self._layout.single_rows:",
        EXACT_TRITON,
    ),
    Mutant(
        "softmax rescale forgotten, paged_attention",
        "the kernel equals the reference",
        KERNELS + "paged_attention.py",
        "mixed = mixed * shrink[:, None]",
        "mixed = mixed",
        PAGED,
    ),
    Mutant(
        "causal mask off by one, paged_attention",
        "the kernel equals the reference",
        KERNELS + "paged_attention.py",
        "key[None, :] <= (start + query)[:, None]",
        "key[None, :] <= (start + query + 1)[:, None]",
        PAGED,
    ),
    Mutant(
        "last block unmasked, paged_attention",
        "unused slots are never read",
        KERNELS + "paged_attention.py",
        "written = key < end",
        "written = key < end + 1",
        PAGED,
    ),
    Mutant(
        "block table row of another request, paged_attention",
        "the kernel equals the reference",
        KERNELS + "paged_attention.py",
        "tables + sequence * table_stride",
        "tables + 0 * sequence * table_stride",
        PAGED,
    ),
    Mutant(
        "wrong K/V head for a query head, paged_attention",
        "the kernel equals the reference",
        KERNELS + "paged_attention.py",
        "head = kv_head * GROUP + r % GROUP",
        "head = kv_head + (r % GROUP) * KV_HEADS",
        PAGED,
    ),
    Mutant(
        "softmax rescale forgotten, paged_decode",
        "the kernel equals the reference",
        KERNELS + "paged_decode.py",
        "shrink = tl.exp2(peak - new_peak)",
        "shrink = tl.exp2(peak - peak)",
        DECODE,
    ),
    Mutant(
        "parts weighed alike",
        "the reduction equals the reference",
        KERNELS + "merge_splits.py",
        "weights = tl.exp2(logs - tl.max(logs, 0))",
        "weights = tl.exp2(logs * 0.0)",
        DECODE,
    ),
]


@dataclass(frozen=True)
class Verdict:
    """What killed the mutant, and the seconds that it took."""

    fixed: bool
    searched: bool
    seconds: float


def run(mutant: Mutant) -> Verdict:
    """Run the tests of the mutant's law against it."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="mutant-") as scratch:
        copy = Path(scratch)
        copy_source(copy)
        path = copy / mutant.file
        path.write_text(path.read_text().replace(mutant.old, mutant.new))
        fixed = kills(mutant.tests, copy, "fixed")
        searched = kills((*SEARCHES, *mutant.tests), copy, "search")
        return Verdict(fixed, searched, time.perf_counter() - started)


def original_dies() -> bool:
    """Whether a test fails against the unchanged source: then nothing that it kills is shown to be wrong."""
    tests = tuple(dict.fromkeys(test for mutant in MUTANTS for test in mutant.tests))
    with tempfile.TemporaryDirectory(prefix="mutant-") as scratch:
        copy_source(Path(scratch))
        return kills(tests, Path(scratch), "fixed") or kills((*SEARCHES, *tests), Path(scratch), "search")


def copy_source(folder: Path) -> None:
    for name in ("minicache", "tests", "tui", "lessons"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)


def kills(tests: tuple[str, ...], where: Path, profile: str) -> bool:
    """Whether a test fails, or the run crashes or never ends. Raises `RuntimeError` if the tests cannot be run."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(where), "HYPOTHESIS_PROFILE": profile}
    try:
        done = subprocess.run(command, cwd=where, env=environment, timeout=TIMEOUT, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        return True
    if done.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return False
    if done.returncode == pytest.ExitCode.TESTS_FAILED or done.returncode < 0:
        return True
    raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}")


def main() -> int:
    if original_dies():
        print("The tests fail without any mutant: make test says why.")
        return 1
    survivors = []
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        print("killed by written cases / by search", flush=True)
        for mutant, verdict in zip(MUTANTS, pool.map(run, MUTANTS), strict=True):
            found = "found by search" if verdict.searched else "NOT FOUND" if mutant.must_be_found else "not found"
            fixed = "killed" if verdict.fixed else "SURVIVES"
            print(f"{fixed:8}  {found:15}  {verdict.seconds:4.0f} s  {mutant.name}: {mutant.law}", flush=True)
            if not (verdict.fixed and (verdict.searched or not mutant.must_be_found)):
                survivors.append(mutant.name)
    print("\nThe mutants of the core, and the laws that each of them breaks:", flush=True)
    table = ["-m", "pytest", "-q", "-s", "-m", "nightly or not nightly", "tests/core/test_mutants.py"]
    core = subprocess.run([sys.executable, *table], cwd=ROOT)
    print(f"{len(MUTANTS) - len(survivors)} of {len(MUTANTS)} mutants of engine and kernels killed")
    return 1 if survivors or core.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
