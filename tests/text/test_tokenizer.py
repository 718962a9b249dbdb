import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicache.text.errors import TokenizerFailed
from minicache.text.tokenizer import REPLACEMENT, ByteTokenizer, HubTokenizer, StreamDecoder
from tests.text.tiny_hub import write_hub_folder

PRINTABLE = st.text(st.characters(exclude_categories=["Cs"]))
WITH_CONTROL = st.lists(st.one_of(PRINTABLE, st.sampled_from(list(ByteTokenizer.CONTROL)))).map("".join)


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    return HubTokenizer(write_hub_folder(tmp_path_factory.mktemp("hub")))


@pytest.fixture(params=["byte", "hub"], scope="module")
def tokenizer(request):
    return ByteTokenizer() if request.param == "byte" else request.getfixturevalue("hub")


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
