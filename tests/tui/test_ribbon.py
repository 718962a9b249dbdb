"""The ribbon of a request: text, boundaries, the first difference; whatever the prompt is made of."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from minicache.core import EventStream, HashChainCache, Request, Scheduler, SchedulerConfig
from minicache.sim.library import find_scenario
from minicache.sim.prompt import Run
from minicache.sim.timeline import Timeline
from minicache.sim.tokens import FIRST_REDACTED_TOKEN, FIRST_SAMPLED_TOKEN, FIRST_SEGMENT_TOKEN
from minicache_tui.model.token_text import INSIDE, TokenText, visible
from minicache_tui.player import Player
from minicache_tui.signs import Sign

from .player_runs import TIMELINES, player_at

TOP = Timeline.record(find_scenario("timestamp-top"))


@given(text=st.text(min_size=1, max_size=40), size=st.integers(1, 9))
def test_the_pieces_of_a_text_are_the_text_with_every_character_whole(text, size):
    tokens = list(text.encode())
    shown = TokenText(tokens)
    pieces = [shown.piece(start, min(start + size, len(tokens))) for start in range(0, len(tokens), size)]
    whole = [
        piece for start, piece in zip(range(0, len(tokens), size), pieces, strict=True) if _begins(tokens, start, size)
    ]
    assert "".join(whole) == visible(text)
    assert shown.whole() == visible(text)


def _begins(tokens, start, size):
    """Whether a character begins in the piece."""
    return any(token & 0xC0 != 0x80 for token in tokens[start : start + size])


@given(data=st.binary(min_size=1, max_size=30), size=st.integers(1, 5))
def test_bytes_that_are_no_text_are_shown_without_an_error(data, size):
    shown = TokenText(list(data))
    for start in range(0, len(data), size):
        piece = shown.piece(start, min(start + size, len(data)))
        assert piece
        assert not any(ord(char) < 32 or ord(char) == 127 for char in piece)


def test_segments_are_named_and_counted_and_generated_tokens_numbered():
    tokens = [*b"ab", *range(FIRST_SEGMENT_TOKEN, FIRST_SEGMENT_TOKEN + 6), FIRST_SAMPLED_TOKEN + 7]
    text = TokenText(tokens, [Run(2, 5, "rules and tools"), Run(5, 8, "history")])
    assert text.piece(0, 4) == "ab rules and tools 0–1"
    assert text.piece(4, 5) == "rules and tools 2"
    assert text.piece(4, 9) == "rules and tools 2 history 0–2 #7"
    assert TokenText(tokens).piece(2, 4) == f"#{FIRST_SEGMENT_TOKEN}…#{FIRST_SEGMENT_TOKEN + 1}"
    assert TokenText([FIRST_REDACTED_TOKEN + 5]).piece(0, 1) == "redacted"
    assert TokenText([5, 6], decode=lambda ids: f"<{ids}>").piece(0, 2) == "<[5, 6]>"


def test_the_timestamp_at_the_top_is_where_the_second_user_differs():
    player = player_at(TOP, 26)
    ribbon = player.ribbon()
    assert (ribbon.request, ribbon.hit_tokens, ribbon.difference, ribbon.against) == ("user2", 0, 13, "user1")
    assert ribbon.blocks[0].text == "It is 14:03:22. "
    assert {block.sign for block in ribbon.blocks} == {None}
    player.seek(30)
    assert {block.sign for block in player.ribbon().blocks} == {Sign.COMPUTED}
    assert [block.block for block in player.ribbon().blocks] == player.view.tables["user2"]
    assert any("rules and tools" in block.text for block in ribbon.blocks)


def test_the_hit_ends_where_the_lookup_ended_before_and_after_admission():
    timeline = TIMELINES["two-equal-prompts, hash"]
    for place in (7, 10, 13):
        ribbon = player_at(timeline, place).ribbon("user2")
        assert ribbon.hit_tokens == 32
        assert [block.sign for block in ribbon.blocks][:2] == [Sign.HIT, Sign.HIT]
    assert ribbon.blocks[2].sign is Sign.COMPUTED


def test_a_preempted_request_has_found_nothing_until_it_is_looked_up_again():
    timeline = TIMELINES["preempt-and-resume, hash"]
    preempted = timeline.next(-1, "RequestPreempted")
    again = timeline.next(preempted, "PrefixMatched")
    player = player_at(timeline, preempted)
    assert player.index.last_lookup("second", preempted - 1) is not None
    assert player.index.last_lookup("second", preempted) is None
    assert player_at(timeline, again - 1).ribbon("second").hit_tokens == 0
    assert player_at(timeline, again).ribbon("second").hit_tokens == timeline.events[again].num_tokens > 0


@pytest.mark.parametrize("timeline", TIMELINES.values(), ids=list(TIMELINES))
def test_the_blocks_of_a_ribbon_are_the_request_cut_without_a_gap(timeline):
    player = Player(timeline)
    while player.step():
        ribbon = player.ribbon()
        request = player.view.requests.get(ribbon.request) or player.view.ended[ribbon.request]
        ends = [0, *(block.start + block.num_tokens for block in ribbon.blocks)]
        assert [block.start for block in ribbon.blocks] == ends[:-1]
        assert ends[-1] == len(request.tokens) == ribbon.num_tokens
        size = player.view.block_size
        assert all(block.start % size == 0 for block in ribbon.blocks)
        assert all(block.text for block in ribbon.blocks)
        if ribbon.request in player.view.tables:  # what has KV has it in a block
            assert all(block.block is not None for block in ribbon.blocks if block.sign not in (None, Sign.HIT))
        for block in ribbon.blocks:
            if block.sign is Sign.HIT:
                assert block.start + block.num_tokens <= ribbon.hit_tokens
            if block.block is not None:
                assert block.block == player.view.tables[ribbon.request][block.start // size]


def test_small_blocks_stand_together_up_to_where_the_hit_ends():
    player = Player(TIMELINES["radix-split-and-prune, radix"])
    player.go_to_request("fourth")
    player.next_of("PrefixMatched")
    ribbon = player.ribbon()
    assert [block.text for block in ribbon.blocks] == ["Translate this: ", "I need a lot of ", "room for this"]
    assert [block.sign for block in ribbon.blocks] == [Sign.HIT, None, None]


def test_walls_of_small_blocks_stand_where_a_hit_and_where_a_node_ends():
    player = Player(TIMELINES["two texts"])
    player.go_to_request("b")
    player.next_of("PrefixMatched")
    assert [block.text for block in player.ribbon("b").blocks] == ["Translate it: ", "thank you"]
    texts = [block.text for block in player.ribbon("ab").blocks]
    assert texts[:2] == ["Translate it: ", "good morning"]


def test_tokens_of_an_engine_are_shown_as_ids_unless_somebody_can_decode_them():
    timeline = Timeline(9, 4, {"clock": "measured"})
    events = EventStream(timeline)
    scheduler = Scheduler(HashChainCache(9, 4, events=events), SchedulerConfig.vllm(), events=events)
    scheduler.add(Request("r", [900, 901, 902, 903, 904], 2))
    assert player_at(timeline, 0).ribbon().blocks[0].text == "900 901 902 903"
    player = Player(timeline, decode=lambda ids: "".join(chr(id - 800) for id in ids))
    player.seek(0)
    assert player.ribbon().blocks[0].text == "defg"


def test_pieces_of_small_blocks_say_how_many_blocks_there_are_and_which():
    player = Player(TIMELINES["radix-split-and-prune, radix"])
    player.go_to_request("second")
    player.next_of("TokensComputed")
    ribbon = player.ribbon()
    table = player.view.tables["second"]
    assert (ribbon.num_blocks, ribbon.drawn, len(ribbon.blocks)) == (len(table), 16, 2)
    assert [block.held for block in ribbon.blocks] == [f"b{table[0]}–b{table[15]}", f"b{table[16]}–b{table[-1]}"]
    whole = player_at(TOP, 30).ribbon()
    assert (whole.num_blocks, whole.drawn) == (len(whole.blocks), 0)
    assert [block.held for block in whole.blocks] == [f"b{block.block}" for block in whole.blocks]


def tokenizer_of(data: bytes, sizes: list[int]) -> tuple[list[int], Callable[[Sequence[int]], str], list[int]]:
    """Tokens of 1 to 5 bytes as an engine's are, their decoder, and with which byte each begins."""
    vocabulary, starts, at = [], [], 0
    while at < len(data):
        starts.append(at)
        vocabulary.append(data[at : at + sizes[len(vocabulary) % len(sizes)]])
        at += len(vocabulary[-1])
    decode = lambda tokens: b"".join(vocabulary[token] for token in tokens).decode("utf-8", "replace")  # noqa: E731
    return list(range(len(vocabulary))), decode, starts


SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=9)


@given(
    st.text(st.sampled_from("ab é€你👩\N{REPLACEMENT CHARACTER}"), min_size=1, max_size=30), SIZES, st.integers(1, 5)
)
@example("a👩b", [1], 1)
def test_a_character_of_an_engine_is_whole_in_the_block_in_which_it_begins(text, sizes, block) -> None:
    tokens, decode, starts = tokenizer_of(text.encode(), sizes)
    begins = [len(text[:i].encode()) for i in range(len(text))]
    shown = TokenText(tokens, decode=decode)
    for start in range(0, len(tokens), block):
        end = min(start + block, len(tokens))
        limit = starts[end] if end < len(tokens) else len(text.encode())
        expected = "".join(char for char, at in zip(text, begins, strict=True) if starts[start] <= at < limit)
        assert shown.piece(start, end) == (expected or INSIDE)


@given(st.binary(min_size=1, max_size=40), SIZES, st.integers(1, 5))
def test_the_pieces_of_what_an_engine_made_up_are_all_of_it(data, sizes, block) -> None:
    data = data.replace(INSIDE.encode(), b"x")
    tokens, decode, _ = tokenizer_of(data, sizes)
    shown = TokenText(tokens, decode=decode)
    pieces = [shown.piece(start, min(start + block, len(tokens))) for start in range(0, len(tokens), block)]
    assert "".join(piece for piece in pieces if piece != INSIDE) == shown.whole()


@pytest.mark.parametrize("timeline", [TOP, *TIMELINES.values()], ids=["timestamp-top", *TIMELINES])
def test_what_is_lost_is_the_same_text_after_the_first_difference(timeline):
    player = Player(timeline)
    size = player.view.block_size
    while player.step():
        ribbon = player.ribbon()
        if ribbon is None or ribbon.difference is None:
            assert ribbon is None or not any(block.lost for block in ribbon.blocks)
            continue
        lookup = player.index.last_lookup(ribbon.request, player.place)
        prompts = player_at(timeline, lookup).view
        ours, theirs = (
            (prompts.requests.get(id) or prompts.ended[id]).tokens for id in (ribbon.request, ribbon.against)
        )
        for block in ribbon.blocks:
            numbers = range(block.start // size, -(-(block.start + block.num_tokens) // size))
            whole = numbers.stop * size <= len(ours)
            alike = [ours[n * size : (n + 1) * size] == theirs[n * size : (n + 1) * size] for n in numbers]
            assert block.lost == (whole and all(alike) and numbers.start > ribbon.difference // size)
    assert timeline is not TOP or (ribbon.num_lost, ribbon.num_after) == (40, 41)
