"""A request is a run of tokens and a few lengths; the rest is derived."""

from hypothesis import given
from hypothesis import strategies as st

from minicache.core import Adapter, Request, RequestStatus

TOKENS = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20)


@given(TOKENS, st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_prompt_and_output_are_the_tokens(prompt, output):
    request = Request("r", prompt)
    for token in output:
        request.append(token)
    assert list(request.tokens) == prompt + output
    assert (list(request.prompt), list(request.output)) == (prompt, output)
    assert (request.num_prompt_tokens, request.num_output_tokens) == (len(prompt), len(output))
    assert request.num_tokens == len(prompt) + len(output)


def test_the_prompt_is_copied():
    prompt = [1, 2, 3]
    request = Request("r", prompt)
    prompt.append(4)
    request.prompt.append(5)
    request.output.append(6)
    assert list(request.tokens) == [1, 2, 3]


def test_a_new_request_waits_and_holds_nothing():
    request = Request("r", [1], stop_tokens=[2, 2])
    assert request.status is RequestStatus.WAITING
    assert (request.block_table, request.num_computed_tokens, request.num_cached_tokens) == ([], 0, None)
    assert request.stop_tokens == {2}


def test_two_statuses_are_final():
    final = [status for status in RequestStatus if status.is_final]
    assert final == [RequestStatus.FINISHED, RequestStatus.ABORTED]


def test_an_adapter_key_tells_name_path_and_digest_apart():
    assert Adapter("a", "/p").key == ("lora", "a", "/p")
    assert Adapter("a", "/p", "d").key == ("lora", "a", "/p", "d")
    assert Adapter("a", "/p", "").key == ("lora", "a", "/p", "")


def test_requests_are_equal_only_to_themselves():
    assert Request("r", [1]) != Request("r", [1])
    assert repr(Request("r", [1, 2])) == "Request('r', 2+0 tokens, 0 computed, waiting)"
