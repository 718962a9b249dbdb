"""Where two texts meet again, compared with an exhaustive search; and what a repair may not undo."""

from hypothesis import given
from hypothesis import strategies as st

from minicache.prompts import spans
from minicache.prompts.earlier import Earlier, starts_of_ids
from minicache.prompts.prompt import Prompt, Source
from minicache.prompts.site import Edit, Later
from minicache.text.byte_tokenizer import PlainByteTokenizer
from tests.prompts.cases import SYS, say
from tests.prompts.diffs import means


def naive_meet(a: str, b: str) -> tuple[int, int] | None:
    """The smallest pair of lengths to skip after which the texts agree."""
    agreements = [
        (i + j, i, j)
        for i in range(len(a) + 1)
        for j in range(len(b) + 1)
        if len(piece := a[i : i + spans.ANCHOR]) >= spans.SHORT_ANCHOR
        and b[j : j + len(piece)] == piece
        and (len(piece) == spans.ANCHOR or i + len(piece) == len(a))
    ]
    return None if not agreements else min(agreements)[1:]


PIECES = st.lists(st.sampled_from(["ab", "ba", "abcabcabcabcabcabc", "xyxyxyxyxyxyxyxyxy", "q"]), max_size=6).map(
    "".join
)


@given(PIECES, PIECES)
def test_the_smallest_difference_is_found(a, b):
    found, naive = spans.meet(a, b, 0, 0), naive_meet(a, b)
    assert (found is None) == (naive is None)
    if found is not None and naive is not None:
        assert found.a_end + found.b_end == sum(naive)
        piece = a[found.a_end : found.a_end + spans.ANCHOR]
        assert b[found.b_end :].startswith(piece)


def test_a_letter_goes_with_its_marks():
    assert spans.first_letters("xe\u0323\u0301z", "xe\u0301\u0323z") == (1, 4, 4)
    assert spans.first_letters("caf\u00e9 a", "cafe\u0301 a") == (3, 4, 5)
    assert spans.first_letters("ab", "ac") == (1, 2, 2)
    assert spans.first_letters("ab", "abc") == (2, 2, 3)


def test_texts_meet_beyond_the_first_window():
    tail = "and here the two agree again, for long enough"
    a, b = "x" * 3000 + tail, "y" * 70 + tail
    assert spans.meet(a, b, 0, 0) == spans.Span(0, 3000, 0, 70)
    assert spans.meet("x" * 100, "y" * 100, 0, 0) is None


@given(PIECES, PIECES, PIECES)
def test_a_difference_of_values_is_all_that_differs_at_first(head, a, b):
    tail = " the same end of both values"
    left, right = head + a + tail, head + b + tail
    found = spans.difference(left, right)
    assert left[: found.a_start] == right[: found.b_start]
    if a == b:
        assert (found.a_end, found.b_end) == (found.a_start, found.b_start)
    else:
        assert left[found.a_start : found.a_start + 1] != right[found.b_start : found.b_start + 1]


@given(st.text(max_size=20))
def test_starts_of_logged_tokens_are_those_of_the_tokenizer(text):
    tokenizer = PlainByteTokenizer()
    ids, places = tokenizer.encode_with_offsets(text)
    if not any(0xD800 <= ord(character) <= 0xDFFF or character == "\ufffd" for character in text):
        assert starts_of_ids(tokenizer, ids, len(text)) == [start for start, _ in places]


def test_an_edit_may_not_change_what_was_replaced_before():
    using = means()
    body = say(SYS, "one", "1", "two")
    source = Source({**body, "tools": None, "documents": None, "template_kwargs": {}, "add_generation_prompt": True})
    prompt = Prompt(source, using)
    later = Later(Earlier(prompt), prompt, 100, 100)
    assert later.repaired(Edit(source.with_value(("messages", 0, "content"), "Other."))) is None
    assert later.repaired(Edit(source.with_value(("messages", 3, "content"), "Other."))) is not None
