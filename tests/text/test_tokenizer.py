import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicache.text.byte_tokenizer import ByteTokenizer, PlainByteTokenizer
from minicache.text.errors import TokenizerFailed
from minicache.text.tokenizer import REPLACEMENT, HubTokenizer, StreamDecoder
from tests.text.tiny_hub import write_hub_folder

PRINTABLE = st.text(st.characters(exclude_categories=["Cs"]))
WITH_CONTROL = st.lists(st.one_of(PRINTABLE, st.sampled_from(list(ByteTokenizer.CONTROL)))).map("".join)


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    return HubTokenizer(write_hub_folder(tmp_path_factory.mktemp("hub")))


@pytest.fixture(params=["byte", "hub"], scope="module")
def tokenizer(request):
    return ByteTokenizer() if request.param == "byte" else request.getfixturevalue("hub")


def with_part(folder, name: str, part: dict) -> HubTokenizer:
    """The tiny tokenizer with one more part in its tokenizer.json."""
    config = json.loads((write_hub_folder(folder) / "tokenizer.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps({**config, name: part}))
    return HubTokenizer(folder)


@pytest.fixture(scope="module")
def nfc(tmp_path_factory):
    return with_part(tmp_path_factory.mktemp("nfc"), "normalizer", {"type": "NFC"})


@pytest.fixture(scope="module")
def trimming(tmp_path_factory):
    """A tokenizer that leaves the space before a word out of the word's span, as those of GPT-2's family do."""
    part = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return with_part(tmp_path_factory.mktemp("trim"), "post_processor", part)


def test_one_byte_is_one_token():
    assert ByteTokenizer().encode("Zoë") == [90, 111, 195, 171]


def test_control_tokens_are_one_token_each():
    assert ByteTokenizer().encode("<|im_start|>a<|im_end|><|endoftext|>") == [256, 97, 257, 258]


@given(text=WITH_CONTROL)
def test_decode_undoes_encode(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text), keep_control=True) == text


@given(text=WITH_CONTROL)
def test_control_tokens_are_left_out_of_an_answer(text):
    plain = text
    tokenizer = ByteTokenizer()
    for name in ByteTokenizer.CONTROL:
        plain = plain.replace(name, "")
    assert tokenizer.decode(tokenizer.encode(text)) == plain


@given(text=WITH_CONTROL)
def test_a_stream_never_splits_a_character(tokenizer, text):
    decoder, tokens = StreamDecoder(tokenizer), tokenizer.encode(text)
    pieces = [decoder.push(token) for token in tokens] + [decoder.finish()]
    assert "".join(pieces) == tokenizer.decode(tokens)
    if REPLACEMENT not in text:
        assert not any(REPLACEMENT in piece for piece in pieces)


@given(data=st.data())
def test_a_stream_of_any_tokens_equals_decoding_them_at_once(tokenizer, data):
    tokens = data.draw(st.lists(st.integers(0, tokenizer.vocab_size - 1)))
    decoder = StreamDecoder(tokenizer)
    assert "".join([*map(decoder.push, tokens), decoder.finish()]) == tokenizer.decode(tokens)


def test_a_character_comes_when_it_is_whole():
    decoder = StreamDecoder(ByteTokenizer())
    assert [decoder.push(byte) for byte in "€!".encode()] == ["", "", "€", "!"]


def test_an_unfinished_character_comes_at_the_end():
    decoder = StreamDecoder(ByteTokenizer())
    assert [decoder.push(0xE2), decoder.push(0x82), decoder.finish()] == ["", "", REPLACEMENT]


@pytest.mark.parametrize("token", [-1, 10**6])
def test_ids_outside_the_vocabulary_are_refused(tokenizer, token):
    with pytest.raises(TokenizerFailed, match=rf"token {token} at position 1 is outside the vocabulary"):
        tokenizer.decode([65, token])


def test_ends_of_a_hub_folder(tmp_path):
    write_hub_folder(tmp_path)
    name = HubTokenizer(tmp_path)
    assert name.eos_ids == {name.encode("<|im_end|>")[0]}
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [0, 7]}))
    assert HubTokenizer(tmp_path).eos_ids == name.eos_ids | {0, 7}


def test_a_folder_without_a_tokenizer(tmp_path):
    with pytest.raises(TokenizerFailed, match=r"tokenizer\.json does not exist"):
        HubTokenizer(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", '{"model": 3}'])
def test_a_corrupt_tokenizer(tmp_path, text):
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(TokenizerFailed, match=r"tokenizer\.json is not a tokenizer"):
        HubTokenizer(tmp_path)


def test_a_corrupt_config_beside_it(tmp_path):
    write_hub_folder(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(TokenizerFailed, match=r"config\.json is not valid JSON"):
        HubTokenizer(tmp_path)


MARKS = st.text("ae \n\N{COMBINING ACUTE ACCENT}\N{COMBINING DIAERESIS}é日😀", max_size=12)


@pytest.mark.parametrize("name", ["plain", "byte", "hub", "nfc", "trimming"])
@given(text=WITH_CONTROL | MARKS)
def test_tokens_and_characters(request, name, text):
    """Spans are in order and without gaps, and a token that shares no character decodes to its own characters."""
    own = {"plain": PlainByteTokenizer, "byte": ByteTokenizer}
    tokenizer = own[name]() if name in own else request.getfixturevalue(name)
    ids, spans = tokenizer.encode_with_offsets(text)
    assert ids == tokenizer.encode(text)
    assert len(spans) == len(ids)
    assert [spans[0][0], spans[-1][1]] == [0, len(text)] if ids else not text
    for (start, end), (following, last) in pairwise(spans):
        assert start <= following <= end <= last
    assert {at for start, end in spans for at in range(start, end)} == set(range(len(text)))
    for id, span, others in zip(ids, spans, _others(spans), strict=True):
        if name != "nfc" and not any(start < span[1] and span[0] < end for start, end in others):
            assert tokenizer.decode([id], keep_control=True) == text[slice(*span)]


def _others(spans):
    return ([*spans[max(index - 1, 0) : index], *spans[index + 1 : index + 2]] for index in range(len(spans)))


@given(text=MARKS)
def test_a_composed_letter_stands_for_what_it_was_composed_of(nfc, text):
    ids, spans = nfc.encode_with_offsets(text + "e\N{COMBINING ACUTE ACCENT} x")
    assert spans[len(ids) - 2 :] == [(len(text) + 2, len(text) + 3), (len(text) + 3, len(text) + 4)]
    assert spans[len(ids) - 3][1] == len(text) + 2


def test_normalisers_are_named(nfc, hub, tmp_path):
    several = [{"type": "NFC"}, {"type": "Lowercase"}]
    both = with_part(tmp_path, "normalizer", {"type": "Sequence", "normalizers": several})
    assert [nfc.normalizer, both.normalizer, hub.normalizer] == ["NFC", "NFC + Lowercase", None]
    assert ByteTokenizer().normalizer is PlainByteTokenizer().normalizer is None
    assert with_part(tmp_path, "normalizer", {"type": "Sequence", "normalizers": []}).normalizer is None
    decomposed = "cafe\N{COMBINING ACUTE ACCENT}"
    assert nfc.encode(decomposed) == nfc.encode("café")
    assert hub.encode(decomposed) != hub.encode("café")


@given(text=WITH_CONTROL)
def test_plain_bytes_are_the_bytes(text):
    tokenizer = PlainByteTokenizer()
    assert tokenizer.encode(text) == list(text.encode())
    assert tokenizer.decode(tokenizer.encode(text)) == text
