"""A stranger's tokenizer.json: settings for training are off, and whatever the library does is one sentence."""

import json
import random
import threading

import pytest

from minicache.text import tokenizers_library
from minicache.text.errors import TokenizerFailed
from minicache.text.tokenizer import HubTokenizer
from tests.text.tiny_hub import write_hub_folder

TEXT = "You are a support bot. Parcels arrive within three working days."
TRUNCATION = {"max_length": 8, "strategy": "LongestFirst", "stride": 2, "direction": "Right"}
PADDING = {"strategy": {"Fixed": 200}, "direction": "Left", "pad_to_multiple_of": 7, "pad_id": 0, "pad_type_id": 0}
PADDING["pad_token"] = "<|endoftext|>"
SETTINGS = [
    {"truncation": truncation, "padding": padding}
    for truncation in (None, TRUNCATION, {**TRUNCATION, "max_length": 0, "stride": 0}, {**TRUNCATION, "stride": 99})
    for padding in (None, PADDING, {**PADDING, "strategy": "BatchLongest"})
]


def split(pattern: str) -> dict:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def replaced(**pattern: str) -> dict:
    return {"type": "Replace", "pattern": pattern, "content": "x"}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return write_hub_folder(tmp_path_factory.mktemp("plain"))


@pytest.fixture
def patched(plain, tmp_path):
    """Writes the tiny tokenizer.json with other parts, and returns its path."""

    def write(model=(), **parts):
        config = json.loads((plain / "tokenizer.json").read_text()) | parts
        config["model"].update(model)
        path = tmp_path / "tokenizer.json"
        path.write_text(json.dumps(config))
        return path

    return write


@pytest.mark.parametrize("dropout", [None, 0.0, 0.5, 1.0])
def test_nothing_is_cut_padded_or_left_to_chance(plain, patched, dropout):
    expected = HubTokenizer(plain).encode_with_offsets(TEXT)
    for parts in SETTINGS:
        tokenizer = HubTokenizer(patched({"dropout": dropout}, **parts))
        for _ in range(5):
            assert tokenizer.encode(TEXT) == expected[0]
            assert list(tokenizer.encode_with_offsets(TEXT)[1]) == list(expected[1])


@pytest.mark.nightly
def test_transformers_gives_the_same_tokens(patched):
    """For every setting that transformers accepts, except dropout, with which it chooses tokens at random."""
    from transformers import PreTrainedTokenizerFast

    for parts in SETTINGS[:6]:
        path = patched(**parts)
        theirs = PreTrainedTokenizerFast(tokenizer_file=str(path))
        assert HubTokenizer(path).encode(TEXT) == theirs.encode(TEXT, add_special_tokens=False), parts
        assert HubTokenizer(path).encode(TEXT) == theirs(TEXT)["input_ids"], parts


def test_ids_with_gaps(patched):
    vocab = {"a": 0, "b": 5_000}
    tokenizer = HubTokenizer(patched({"vocab": vocab, "merges": []}, added_tokens=[], pre_tokenizer=None))
    assert tokenizer.encode("ab") == [0, 5_000]
    assert tokenizer.vocab_size == 5_001
    assert tokenizer.decode([0, 5_000]) == "ab"


PANICS = {
    "a search without end": {"pre_tokenizer": split("(a+)+$")},
    "an empty pattern": {"normalizer": replaced(Regex="")},
    "an empty text to replace": {"normalizer": replaced(String="")},
    "nothing to put before": {"normalizer": {"type": "Prepend", "prepend": ""}},
    "a normaliser of rubbish": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}},
    "an index too high": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "BAAAAAEAAAA="}},
    "a normaliser that asks for 8 GB": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "/////w=="}},
    "an unknown token after a text": {
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "Q", "type_id": 0}}],
            "pair": [],
            "special_tokens": {},
        }
    },
}  # fmt: skip


@pytest.fixture
def alone(monkeypatch):
    """As in a program with one thread. The process of the tests has others, such as the monitor of tqdm's bars."""
    monkeypatch.setattr(threading, "active_count", lambda: 1)


@pytest.mark.parametrize("patient", [True, False])
@pytest.mark.parametrize("name", PANICS)
@pytest.mark.usefixtures("alone")
def test_a_panic_is_one_sentence(patched, capfd, name, patient):
    """The library's own report, of many lines and with the text, stays off standard error."""
    path = patched(**PANICS[name])
    with pytest.raises(TokenizerFailed, match=r"tokenizer\.json (cannot encode a text|is not a tokenizer)") as caught:
        HubTokenizer(path, patient=patient, special_tokens=True).encode("a" * 40 + "b")
    assert "\n" not in str(caught.value)
    assert caught.value.quotes
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("alone")
def test_a_panic_of_the_decoder(patched, capfd):
    tokenizer = HubTokenizer(
        patched(decoder={"type": "Sequence", "decoders": [{"type": "Fuse"}, replaced(Regex="(a+)+$")]})
    )
    with pytest.raises(TokenizerFailed, match="cannot decode tokens"):
        tokenizer.decode([*[tokenizer.encode("a")[0]] * 40, *tokenizer.encode("b")])
    assert capfd.readouterr() == ("", "")


def test_beside_other_threads_standard_error_stays_where_it_is(patched, monkeypatch, capfd):
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    path = patched(**next(iter(PANICS.values())))
    with pytest.raises(TokenizerFailed):
        HubTokenizer(path, special_tokens=True).encode("a" * 40 + "b")
    assert "panicked at" in capfd.readouterr().err


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("patient", [True, False])
def test_what_ends_the_program_passes(plain, error, patient):
    tokenizer = HubTokenizer(plain, patient=patient)

    class Library:
        def encode(self, *texts, **options):
            raise error

        encode_batch = encode

    tokenizer._backend._tokenizer = Library()
    with pytest.raises(error):
        tokenizer.encode("a")


def test_a_search_that_does_not_end_in_time(patched, monkeypatch):
    """Each place costs Rust a tenth of a second, so the library's own limit for one search never ends it."""
    monkeypatch.setattr(tokenizers_library, "PATIENCE", 0.0)
    tokenizer = HubTokenizer(patched(pre_tokenizer=split("(a+)+$")), patient=False)
    with pytest.raises(TokenizerFailed, match=r"a text of 220 characters took more than 0 seconds"):
        tokenizer.encode(("a" * 19 + "b ") * 10 + "a" * 10)


def test_half_a_surrogate_pair(plain):
    with pytest.raises(TokenizerFailed, match=r"half of a surrogate pair, '\\ud800', at character 2"):
        HubTokenizer(plain).encode("ab\ud800")


def test_bytes_instead_of_a_tokenizer(tmp_path):
    """Whatever the bytes are: one sentence, and never another error."""
    source, refused = random.Random(3), []
    whole = (write_hub_folder(tmp_path) / "tokenizer.json").read_bytes()
    for _ in range(60):
        broken = bytearray(whole)
        for _ in range(source.randint(1, 4)):
            start = source.randrange(len(broken))
            broken[start : start + source.randint(1, 30)] = source.randbytes(source.randint(0, 9))
        (tmp_path / "tokenizer.json").write_bytes(broken)
        try:
            HubTokenizer(tmp_path).encode(TEXT)
        except TokenizerFailed as error:
            refused.append(str(error))
    assert len(refused) > 30
    assert not any("\n" in sentence for sentence in refused)
