"""A prompt as a line of text: whatever its parts are, the line reads as the same parts, and it shows only what can be
shown."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from minicache.sim.library import find_scenario, scenario_names
from minicache.sim.prompt import OutputOf, Segment, Text, Tokens
from minicache_tui.prompt_text import BadPrompt, read_prompt, write_prompt

# Characters of which the line itself makes use, ones that a terminal acts on, and any other.
TRICKY = st.sampled_from(
    [*"ab 1|\\[]\n\t\r\x1b\x85\u2028\u200d\u202e\u3000{}nu", "answer of ", "tokens ", " without 2"]
)
STRINGS = st.lists(TRICKY | st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).map("".join)
COUNTS = st.integers(1, 999)
PARTS = st.one_of(
    st.builds(Text, STRINGS),
    st.builds(Segment, STRINGS, COUNTS),
    st.builds(OutputOf, STRINGS, st.integers(0, 99)),
    st.builds(Tokens, st.lists(st.integers(0, 50_000), min_size=1, max_size=4).map(tuple)),
)


@given(st.lists(PARTS, min_size=1, max_size=5).map(tuple))
@example((Text("a\\"), Text("b")))
@example((Text("a|b"), Text(" "), Text("| ")))
@example((Text("[tools 64]"), Segment("tools", 64), Text(" [answer of r1]  ")))
@example((Segment("tokens", 5), Tokens((5,)), Segment("answer of r1 without", 3), OutputOf("r1", 3)))
@example((Segment("tokens 1", 2), Text("\\u{41}"), Text("\\n")))
def test_a_line_reads_as_the_parts_that_were_written(parts) -> None:
    line = write_prompt(parts)
    assert read_prompt(line) == parts
    assert line.isprintable(), "a control character of a prompt must not reach the terminal"
    assert read_prompt(line.rstrip(" ")) == parts


def test_every_prompt_of_the_library_can_be_edited() -> None:
    prompts = [spec.prompt for name in scenario_names() for spec in find_scenario(name).requests]
    assert prompts
    for prompt in prompts:
        assert read_prompt(write_prompt(prompt)) == tuple(prompt)


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("It is 14:03. | [rules and tools 640] | [answer of r1] | Where?", None),
        ("a|b", (Text("a"), Text("b"))),
        ("a  |  b", (Text("a "), Text(" b"))),
        ("a || b", (Text("a"), Text("b"))),
        (r"a \| b", (Text("a | b"),)),
        (r"one\ntwo \u{41}\[x 1]", (Text("one\ntwo A[x 1]"),)),
        ("[tokens 1 2 3]", (Tokens((1, 2, 3)),)),
        ("[answer of r1 without 20]", (OutputOf("r1", 20),)),
        ("see [tools 64]", (Text("see [tools 64]"),)),
        ("ends in a backslash\\", (Text("ends in a backslash\\"),)),
    ],
)
def test_what_a_person_types(line, parts) -> None:
    if parts is None:
        parts = (Text("It is 14:03."), Segment("rules and tools", 640), OutputOf("r1"), Text("Where?"))
    assert read_prompt(line) == parts


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", "the prompt is empty: write some text, or a segment such as [tools 64]"),
        ("|", "the prompt is empty: write some text, or a segment such as [tools 64]"),
        ("a | [tools 0]", "[tools 0]: a segment needs at least one token"),
        (r"\u{110000}", r"\u{110000} is no character: the last one is \u{10ffff}"),
        (r"a \u{d800}", r"\u{d800} is no character: it is half of a pair of surrogates"),
        (r"[\u{dfff} 3]", r"\u{dfff} is no character: it is half of a pair of surrogates"),
    ],
)
def test_what_is_no_prompt_is_said_in_a_sentence(line, sentence) -> None:
    with pytest.raises(BadPrompt) as caught:
        read_prompt(line)
    assert str(caught.value) == sentence
