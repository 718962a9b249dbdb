"""The text of an answer ends at its first stop string, in any pieces.

Law: cut a text into tokens or pieces of any length and feed them one by one until a stop string is found; then the
returned text ends where this string begins. It is the string that is complete first; of several that are complete at
the same character, the longest. The text returned so far is, at any moment, the whole text except the longest end that
may become a stop string. A stop string that is complete before `min_tokens` tokens does not count.
"""

from collections import Counter

from hypothesis import example, given
from hypothesis import strategies as st

from minicache.engine import SamplingParams
from minicache.engine.answers import AnswerText, StopStrings
from minicache.text.byte_tokenizer import ByteTokenizer
from tests.properties.serving import require

texts = st.text(st.sampled_from("ab€"), max_size=14)
stop_lists = st.lists(st.text(st.sampled_from("ab€"), min_size=1, max_size=4), max_size=3)


def first_stop(text: str, stops: list[str], after: int = 0) -> tuple[int, str | None]:
    """Where the text ends, and why: the law, word by word. Only characters from `after` on can complete a stop
    string."""
    for end in range(after + 1, len(text) + 1):
        complete = [stop for stop in stops if text[:end].endswith(stop)]
        if complete:
            longest = max(complete, key=len)
            return end - len(longest), longest
    return len(text), None


def may_become_a_stop(end: str, stops: list[str]) -> bool:
    return any(stop.startswith(end) and stop != end for stop in stops)


@given(texts, stop_lists, st.data())
def test_pieces_of_any_length(text: str, stops: list[str], data: st.DataObject) -> None:
    given_out, fed, found = "", 0, StopStrings(stops)
    while fed < len(text) and found.found is None:
        piece = data.draw(st.integers(1, len(text) - fed))
        given_out += found.push(text[fed : fed + piece])
        fed += piece
        if found.found is None:
            held = next(
                end for end in (text[i:fed] for i in range(fed + 1)) if not end or may_become_a_stop(end, stops)
            )
            assert given_out == text[: fed - len(held)]
    end, stop = first_stop(text, stops)
    assert (given_out + found.rest(), found.found) == (text[:end], stop)
    if stop is not None:
        assert found.push("more") == ""


def test_tokens_that_are_parts_of_characters() -> None:
    seen: Counter[str] = Counter()

    @given(texts, stop_lists, st.integers(0, 6))
    @example("a€bab", ["€b", "€"], 0)
    @example("abba", ["b"], 3)
    @example("aab", ["b"], 3)
    def law(text: str, stops: list[str], min_tokens: int) -> None:
        answer = AnswerText(ByteTokenizer(), SamplingParams(max_tokens=99, stop=stops, min_tokens=min_tokens))
        given_out = ""
        for token in text.encode():
            given_out += answer.push(token)
            if answer.stop is not None:
                break
        given_out += answer.finish()
        early = len(text.encode()[:min_tokens].decode(errors="ignore"))
        end, stop = first_stop(text, stops, early)
        assert (given_out, answer.stop) == (text[:end], stop)
        seen["stopped"] += stop is not None
        seen["not stopped, for it came too early"] += stop is None and first_stop(text, stops)[1] is not None

    law()
    require(seen, "stopped", "not stopped, for it came too early")
