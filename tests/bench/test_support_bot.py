import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicache.bench.support_bot import INTRODUCTION, system_prompt
from minicache.core.errors import InvalidArgument
from minicache.text.byte_tokenizer import ByteTokenizer
from minicache.text.tokenizer import HubTokenizer
from tests.text.tiny_hub import write_hub_folder


@pytest.fixture(scope="module", params=["byte", "hub"])
def length(request, tmp_path_factory):
    hub = request.param == "hub"
    tokenizer = HubTokenizer(write_hub_folder(tmp_path_factory.mktemp("hub"))) if hub else ByteTokenizer()
    return lambda text: len(tokenizer.encode(f"<|im_start|>system\n{text}<|im_end|>\n"))


@given(target=st.integers(12, 4000))
def test_the_length_is_exact_whatever_the_tokenizer(length, target):
    if length("") < target:
        assert length(system_prompt(length, target)) == target


def test_it_begins_with_the_introduction(length):
    assert system_prompt(length, 2999).startswith(INTRODUCTION)


def test_a_target_without_room(length):
    with pytest.raises(InvalidArgument, match="a prompt of 5 tokens is too short"):
        system_prompt(length, 5)


def test_a_tokenizer_that_cannot_hit_the_target():
    with pytest.raises(InvalidArgument, match="found no prompt of exactly 301 tokens"):
        system_prompt(lambda text: 2 * len(text), 301)
