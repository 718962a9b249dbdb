"""The words of the field: explained in one place, and the page shows what is written there."""

import re
from pathlib import Path

from minicache.core.eviction import STRATEGIES
from minicache.sim.phrases import GLOSSARY

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tui.md"


def test_the_page_has_the_words_of_the_glossary():
    table = PAGE.read_text(encoding="utf-8").partition("## Words\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", table, re.MULTILINE)
    assert dict(rows[1:]) == GLOSSARY, "docs/tui.md: the table of words is not the glossary's"


def test_each_meaning_is_one_short_piece_of_a_sentence():
    for word, meaning in GLOSSARY.items():
        assert len(meaning) <= 130, word
        assert not re.search(r"[.!?]|behind", meaning), word


def test_the_words_that_stand_without_an_explanation_elsewhere_are_there():
    assert {"KV", "hash chain", "radix tree", "prefill", "decode", "publish", "null block", "lpm"} <= set(GLOSSARY)
    assert {"lru", "lfu"} <= set(GLOSSARY) & set(STRATEGIES)
