"""Tokenizers that a stranger wrote: a small tokenizer.json with other parts, wrong values and broken bytes, and the
configs beside it."""

import json
from random import Random
from typing import Any

from tests.hostile.probe import Probe
from tests.hostile.templates import body

IMPORTS = (
    "minicache.prompts.examine", "minicache.prompts.html", "minicache.text.renderer", "minicache.text.sources",
    "tokenizers",
)  # fmt: skip

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;!?<>|_{}[]()'\"ĠĊ"
PATTERNS = (
    "",
    "(",
    "(a+)+$",
    "(?:a|a)*c",
    "(?<=a+)b",
    "\\p{L}+",
    "[",
    "a{99999999}",
    "(?i)a",
    "\\",
    "^",
    ".",
    "(?R)",
    "\x00",
    "é",
)
TEXTS = ("", "a", "x" * 300, "\x1b[2J", "\u202e", "\u0000", "Ġ", "<s>", "日本")
NUMBERS = (0, 1, -1, 2, 300, 2**31, 2**32, 2**63, 10**400, 0.5, 1e308)
LENGTHS = (0, 1, 2, 8, 10**9, -1)


def pattern(random: Random) -> dict[str, str]:
    return {random.choice(("Regex", "Regex", "String", "Glob")): random.choice((*PATTERNS, *TEXTS))}


def split(random: Random) -> dict[str, Any]:
    behavior = random.choice(("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous", "Nothing"))
    return {"type": "Split", "pattern": pattern(random), "behavior": behavior, "invert": random.random() < 0.5}


def byte_level(random: Random) -> dict[str, Any]:
    switches = ("add_prefix_space", "trim_offsets", "use_regex")
    return {"type": "ByteLevel", **{name: random.random() < 0.5 for name in switches}}


def normalizer(random: Random) -> dict[str, Any]:
    kind = random.choice(
        (
            "NFC",
            "NFKD",
            "Lowercase",
            "StripAccents",
            "Nmt",
            "Replace",
            "Prepend",
            "Precompiled",
            "Strip",
            "BertNormalizer",
        )
    )
    extra: dict[str, Any] = {
        "Replace": {"pattern": pattern(random), "content": random.choice(TEXTS)},
        "Prepend": {"prepend": random.choice(TEXTS)},
        "Precompiled": {"precompiled_charsmap": random.choice(("", "AAAA", "BAAAAAEAAAA=", "/////w==", "x", None))},
        "Strip": {"strip_left": True, "strip_right": random.choice((True, 3))},
        "BertNormalizer": {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
    }.get(kind, {})
    return {"type": kind, **extra}


def decoder(random: Random) -> dict[str, Any]:
    return random.choice(
        (
            {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
            {"type": "Replace", "pattern": pattern(random), "content": random.choice(TEXTS)},
            {"type": "Strip", "content": random.choice(("x", "", "xy")), "start": random.choice(LENGTHS), "stop": 9},
            {"type": "ByteFallback"},
            {"type": "Fuse"},
            {"type": "WordPiece", "prefix": random.choice(TEXTS), "cleanup": True},
            {"type": "CTC", "pad_token": "a", "word_delimiter_token": "", "cleanup": True},
            {"type": "Nothing"},
        )
    )


def post_processor(random: Random) -> dict[str, Any]:
    pieces = [{"SpecialToken": {"id": random.choice(TEXTS), "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    special = {"<s>": {"id": "<s>", "ids": [random.choice(NUMBERS)], "tokens": ["<s>"]}}
    return random.choice(
        (
            byte_level(random),
            {
                "type": "TemplateProcessing",
                "single": pieces,
                "pair": pieces,
                "special_tokens": random.choice(({}, special)),
            },
            {"type": "BertProcessing", "sep": ["a", 0], "cls": ["b", random.choice(NUMBERS)]},
        )
    )


def sequence(random: Random, name: str, part: Any) -> Any:
    """One part, or several, or many inside each other."""
    kind = random.random()
    if kind < 0.7:
        return part(random)
    if kind < 0.95:
        return {"type": "Sequence", name: [part(random) for _ in range(random.randint(0, 4))]}
    whole = part(random)
    for _ in range(random.choice((10, 130, 3000))):
        whole = {"type": "Sequence", name: [whole]}
    return whole


def model(random: Random) -> dict[str, Any]:
    vocabulary: dict[str, Any] = {letter: number for number, letter in enumerate(LETTERS)}
    vocabulary |= {"ab": len(LETTERS), "he": random.choice((len(LETTERS) + 1, 5_000, 0))}
    merges = random.choice(([], [["a", "b"], ["h", "e"]], ["a b"], [["x", "nothing"]], ["a"], [[]], 3))
    switches = {"byte_fallback": random.random() < 0.5, "ignore_merges": random.random() < 0.5, "fuse_unk": False}
    bpe = {
        "type": "BPE",
        "vocab": vocabulary,
        "merges": merges,
        **switches,
        "unk_token": random.choice((None, "a", "no")),
    }
    bpe["dropout"] = random.choice((None, None, 0.0, 0.5, 1.0, 2.0, "x"))
    bpe["continuing_subword_prefix"] = random.choice((None, None, "##", ""))
    bpe["end_of_word_suffix"] = random.choice((None, None, "</w>"))
    scores = [["<unk>", 0.0], *([letter, -1.0] for letter in LETTERS), ["he", random.choice((-1.0, 1e308, -1e308))]]
    unigram = {"type": "Unigram", "unk_id": random.choice((0, None, 10**6)), "vocab": scores, "byte_fallback": False}
    word = {"type": "WordLevel", "vocab": vocabulary, "unk_token": random.choice(("a", "no"))}
    piece = {"type": "WordPiece", "vocab": vocabulary, "unk_token": "a", "continuing_subword_prefix": "##"}
    piece["max_input_chars_per_word"] = random.choice((0, 100, 2**40))
    return random.choice((bpe, bpe, bpe, unigram, unigram | {"alpha": 0.1, "nbest_size": -1}, word, piece))


def added_token(random: Random) -> dict[str, Any]:
    switches = ("single_word", "lstrip", "rstrip", "normalized", "special")
    token = {
        "id": random.choice((99, 100, 0, *NUMBERS[:7])),
        "content": random.choice((*TEXTS, "<|im_start|>", "user")),
    }
    return token | {name: random.random() < 0.3 for name in switches}


def changed(random: Random, value: Any) -> Any:
    """`value` with one wrong value somewhere in it."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        key = random.choice(list(value))
        return {**value, key: changed(random, value[key])}
    if isinstance(value, list) and value and random.random() < 0.9:
        at = random.randrange(len(value))
        return [*value[:at], changed(random, value[at]), *value[at + 1 :]]
    return random.choice((None, True, 3, -1, 10**400, 1e308, "x", "", [], {}, [[]], {"type": "x"}))


def tokenizer(random: Random) -> bytes:
    truncation = {
        "max_length": random.choice(LENGTHS),
        "strategy": "LongestFirst",
        "stride": random.choice(LENGTHS),
        "direction": "Right",
    }
    padding = {
        "strategy": random.choice(("BatchLongest", {"Fixed": random.choice(LENGTHS)})),
        "direction": "Left",
        "pad_id": 0,
    }
    padding |= {"pad_to_multiple_of": random.choice((None, 0, 8)), "pad_type_id": 0, "pad_token": "a"}
    splitting = random.choice((split, byte_level))
    whole: Any = {
        "version": random.choice(("1.0", "1.0", "1.0", "9.9")),
        "truncation": random.choice((None, truncation)),
        "padding": random.choice((None, padding)),
        "added_tokens": [added_token(random) for _ in range(random.choice((0, 0, 1, 3)))],
        "normalizer": random.choice((None, sequence(random, "normalizers", normalizer))),
        "pre_tokenizer": random.choice((None, sequence(random, "pretokenizers", splitting))),
        "post_processor": random.choice((None, post_processor(random))),
        "decoder": random.choice((None, sequence(random, "decoders", decoder))),
        "model": model(random),
    }
    for _ in range(random.choice((0, 0, 0, 1, 2))):
        whole = changed(random, whole)
    try:
        text = bytearray(json.dumps(whole).encode())
    except (RecursionError, ValueError):
        return b'{"a": ' * 3000
    for _ in range(random.choice((0, 0, 0, 0, 1, 3))):
        at = random.randrange(len(text) + 1)
        text[at : at + random.randint(0, 9)] = random.randbytes(random.randint(0, 5))
    return bytes(text)


def probe(random: Random) -> Probe:
    first = random.choice(
        (body(random), json.dumps({"prompt": random.choice(("aaaa" * 9 + "b", "hello", "é日", ""))}).encode())
    )
    ids = json.dumps({"prompt": [random.choice((0, 1, 5, 99, 5_000, 2**31, 10**30)) for _ in range(3)]}).encode()
    files = {
        "a.json": first,
        "b.json": random.choice((first, body(random), ids)),
        "model/tokenizer.json": tokenizer(random),
    }
    config = {"eos_token": random.choice(("a", "<s>", {"content": "a"}, {"content": 3}, [1], None)), "bos_token": "<s>"}
    files["model/tokenizer_config.json"] = random.choice((json.dumps(config).encode(),) * 3 + (b"{", b"[" * 2000))
    if random.random() < 0.3:
        ends = random.choice((0, [0, 1], 10**400, -1, True, ["x"], {}, None))
        files["model/config.json"] = json.dumps({"eos_token_id": ends}).encode()
    chosen = random.choice((["--json"], ["--redact"], ["--html", "out.html"], [], ["--generated", "aab"]))
    where = random.choice(("model", "model", "model/tokenizer.json"))
    return Probe(
        ("diff", "a.json", "b.json", "--tokenizer", where, "--template", "chatml", *chosen), files, writes=("out.html",)
    )
