"""A request's text and times, token by token."""

import pytest

from minicache.core import Request
from minicache.engine.answers import Answer
from minicache.engine.sampling_params import SamplingParams
from minicache.text.byte_tokenizer import ByteTokenizer


def follow(text: bytes, **settings: object) -> tuple[Request, Answer, list[str]]:
    """A request that samples the bytes of `text` one by one, a second each, and ends with the last."""
    request = Request("r", [1], max_tokens=len(text))
    stream = Answer(request, SamplingParams(**settings), ByteTokenizer(), now=10.0)
    pieces = []
    for second, byte in enumerate(text, start=11):
        request.append(byte)
        request.finish_reason = "length" if request.num_output_tokens == len(text) else None
        pieces.append(stream.update(float(second)).new_text)
    return request, stream, pieces


def test_a_character_is_never_split() -> None:
    _, stream, pieces = follow("aé日".encode())
    assert pieces == ["a", "", "é", "", "", "日"]
    assert stream.output.text == "aé日"


def test_a_character_that_never_became_whole_shows_at_the_end() -> None:
    _, stream, pieces = follow(b"a\xc3")
    assert pieces == ["a", "\N{REPLACEMENT CHARACTER}"]
    assert stream.output.text == ByteTokenizer().decode(stream.output.token_ids)


def test_timings() -> None:
    _, stream, _ = follow(b"abc")
    timings = stream.output.timings
    assert (timings.ttft, timings.total, timings.decode_rate(3)) == (1.0, 3.0, 1.0)
    assert follow(b"a")[1].output.timings.decode_rate(1) is None


def test_several_tokens_at_once() -> None:
    request = Request("r", [1], max_tokens=9)
    stream = Answer(request, SamplingParams(), None, now=0.0)
    for token in (5, 6):
        request.append(token)
    output = stream.update(1.0)
    assert output.new_token_ids == [5, 6]
    assert output.text is None
    assert stream.update(2.0).new_token_ids == []
    assert output.timings.last_token == pytest.approx(1.0)
