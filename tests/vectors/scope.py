"""Which vectors of the specification hold here, which do not, and why.

The specification's rows are numbered V (vLLM), S, C, L, P, M (SGLang), N (two small engines) and H (hashes); `V1.2`
continues `V1`. F rows are not in the specification: random histories against the real engines found them. The reason
for a row is under its own id, or under the id of the row that it continues.
"""

import importlib
import re
from pathlib import Path

from tests.vectors.registry import HELD, ROOT

SCOPE = "V1-V16 V20-V32 V40-V46 V48 V50 S1-S25 S28 C1-C5 L1 P1 P2 P5-P8 H1-H12 H16 H17 F1-F17"

SLIDING_WINDOW = "sliding-window attention: every layer here attends to everything"
HYBRID = "layers of several kinds in one model: every layer here is of the same kind"
ON_ARRIVAL = "priorities do not preempt on arrival here"
LATER = "comes with the feed of KV events"
OTHER_ENGINE = "about an engine that is not reproduced here"

OUT: dict[str, str] = {
    "V17": "images: no model here accepts them; their keys in the block hash are H7 and H12",
    "V18": LATER,
    "V19": LATER,
    "V24": "`evict` here takes a number of blocks in eviction order, not block ids",
    **dict.fromkeys(("V33", "V34", "V35", "V36"), SLIDING_WINDOW),
    "V37": HYBRID,
    "V38": HYBRID,
    "V39": "speculative decoding with EAGLE",
    "V47": "images: their offsets, in the untagged form of older versions",
    "V49": HYBRID,
    "V51": LATER,
    "V52": SLIDING_WINDOW,
    "S26": LATER,
    "S27": LATER,
    "P3": "a policy here uses lookups, which leave the last token out; a match without this limit does not exist",
    "P4": "queue policy dfs-weight",
    **dict.fromkeys(("P8.2", "P8.3", "P8.4", "P8.5"), ON_ARRIVAL),
    "P9": "how SGLang marks the end of a chunk; here a request's tokens are never cut",
    "M1": "a law about whole conversations, which needs a model: the tests of the engine have it",
    "M2": "a stress test of a running server: property tests run random histories",
    "N1": OTHER_ENGINE,
    "N2": OTHER_ENGINE,
    "N3": "a bug of a third engine, which breaks C1",
    "H13": "prompts given as embeddings",
    "H14": HYBRID,
    "H15": "the 64-bit form of a hash, which only KV events use",
    "H18": "a hash of pickled bytes, which are not canonical",
    "H19": "the untagged keys of older versions, which let an adapter's name collide with a salt",
}

PARTLY: dict[str, str] = {
    "V9": "Its events come with the feed of KV events.",
    "V15": "Adapters have no integer id here; in vLLM it is not part of the key either.",
    "V23": "Deviation: blocks that a request published and did not compute are unpublished when it is released.",
    "V48": "Its second half is about sliding windows.",
    "H16": "The variants that hash pickled bytes are out.",
    "S7": "Nothing here compares keys, so the test uses a match across namespaces.",
}


def number(id: str) -> str:
    """The row's letter and number: `V1.2`, `V1b` -> `V1`."""
    found = re.match(r"[A-Z]\d+", id)
    assert found, id
    return found.group()


def in_scope() -> list[str]:
    """The numbers in `SCOPE` that are not out."""
    numbers = []
    for part in SCOPE.split():
        first, _, last = part.partition("-")
        letter, end = first[0], int((last or first)[1:])
        numbers += [f"{letter}{n}" for n in range(int(first[1:]), end + 1)]
    return [n for n in numbers if n not in OUT]


def order(id: str) -> tuple[int, int, str]:
    """Sorts ids as the specification lists them."""
    return "HVSCLPMNF".index(id[0]), int(number(id)[1:]), id


def load_all() -> None:
    """Import every test file, so that the registry is whole."""
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        importlib.import_module(f"tests.vectors.{path.stem}")


SPEC = ROOT.parent / "shared" / "spec" / "engines.md"


def ids_of_spec() -> set[str]:
    """The first column of the specification's tables of vectors."""
    return set(re.findall(r"^\| ([HVSCLPMN]\d+[a-z]?(?:\.\d+)?)\b", SPEC.read_text(encoding="utf-8"), re.MULTILINE))


__all__ = ["HELD", "OUT", "PARTLY", "SCOPE", "SPEC", "ids_of_spec", "in_scope", "load_all", "number", "order"]
