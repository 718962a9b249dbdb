"""Writes `docs/reference/vectors.md`: the vectors that hold, with their tests, those that do not, and the deviations.

python -m tests.vectors.write_page
"""

from tests.vectors.deviations import DEVIATIONS
from tests.vectors.registry import HELD, ROOT
from tests.vectors.scope import OUT, PARTLY, load_all, order

PAGE = ROOT / "docs" / "reference" / "vectors.md"

INTRODUCTION = """\
# Vectors

<!-- Written by `python -m tests.vectors.write_page` from `tests/vectors/`. -->

A vector is a row of the specification: operations on the prefix cache of a real engine, and their results. H and V are
vLLM 0.33's; S, C, L and P are SGLang 0.5.23's. `V1.2` continues `V1`. F rows were found by playing random histories
against the real engines. To run the tests of one row:

```sh
python -m pytest tests/vectors -k "V1.2]"
```

After every call, the tests check the cache from scratch and compare it with a view that is built from the events alone.
"""


def page() -> str:
    """The page as it should be."""
    load_all()
    parts = [INTRODUCTION, f"## Held: {len(HELD)} rows\n"]
    parts.append("| id | what it fixes | test, in `tests/vectors/` |\n|---|---|---|")
    for id in sorted(HELD, key=order):
        held = HELD[id]
        note = f" *{PARTLY[id]}*" if id in PARTLY else ""
        tests = "<br>".join(f"`{test.removeprefix('tests/vectors/')}`" for test in held.tests)
        parts.append(f"| {id} | {held.fixes}{note} | {tests} |")
    parts.append("\n## Out\n\n| id | why |\n|---|---|")
    parts += [f"| {id} | {OUT[id]} |" for id in sorted(OUT, key=order)]
    parts.append("\n## Deviations on purpose\n\nAnything else that differs from the real engines is a fault.\n")
    parts.append("| engine | what it does | what minicache does | why |\n|---|---|---|---|")
    parts += [
        f"| {deviation.engine} | {deviation.theirs} | {deviation.ours} | {deviation.reason} |"
        for deviation in DEVIATIONS
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}: {len(HELD)} rows held, {len(OUT)} out")
