"""What a person can ask of a fork: each a line of text that becomes a `Change`."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from minicache.core.errors import MinicacheError
from minicache.sim.fork import (
    Change,
    EditPrompt,
    SetBlockSize,
    SetNumBlocks,
    SetPolicy,
    ShrinkPool,
)
from minicache.sim.library import read_value
from minicache.sim.policy import settings_of
from minicache.sim.scenario import RequestSpec
from minicache.sim.scenario_file import MAX_TOKENS
from minicache.sim.timeline import Timeline

from .changes import Together, scenario_behind, still_to_come
from .numbers import whole
from .player import Player
from .prompt_text import read_prompt, write_prompt

FIRST_PART_MOVED = "the first part moved after the second"  # what such a fork is called, everywhere
STARTS_EMPTY = "The new pool is empty; whoever runs starts again."
LONGEST_SETTING = 60  # characters of one that is typed


class CannotAsk(MinicacheError):
    """The line does not say a change."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One kind of change: what the menu says of it, what to type, what stands there at first, and how it is read.

    `offer` gives what the menu says below the title, None where the change cannot be made; `hint` what the dialog says.
    `suggest` gives None where nothing need be typed; `edit`: what it gives is there to be edited. `from_start`: the
    fork begins at the beginning.
    """

    title: str
    offer: Callable[[Timeline, int], str | None]
    suggest: Callable[[Timeline, int], str | None]
    read: Callable[[Timeline, int, str], Change | None]
    hint: Callable[[Timeline, int], str] = lambda timeline, place: ""
    from_start: bool = False
    edit: bool = False


def _of_parts(timeline: Timeline) -> list[RequestSpec]:
    """The requests whose prompt has a part that could come after another one."""
    return [spec for spec in scenario_behind(timeline, -1).requests if len(set(spec.prompt[:2])) > 1]


def _offer_move(timeline: Timeline, place: int) -> str | None:
    """Of which parts it is, as the first prompt has them."""
    found = _of_parts(timeline)
    if not found:
        return None
    first, second = (_short(write_prompt([part])) for part in found[0].prompt[:2])
    who = "every request" if len(found) > 1 else found[0].id
    return f"In the whole run, of {who}: “{first}” comes after “{second}”."


def _short(text: str, most: int = 24) -> str:
    text = text.strip()
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _offer_prompt(timeline: Timeline, place: int) -> str | None:
    later = still_to_come(timeline, place)
    return f"{later[0].id} is the next to arrive." if later else None


def _move_first(timeline: Timeline, place: int, line: str) -> Change:
    edits = []
    for spec in _of_parts(timeline):
        first, second, *rest = spec.prompt
        edits.append(EditPrompt(spec.id, (second, first, *rest)))
    if not edits:
        raise CannotAsk("no prompt of this run has two parts that could change places")
    return Together(tuple(edits), FIRST_PART_MOVED)


def _prompt_line(timeline: Timeline, place: int) -> str:
    later = still_to_come(timeline, place)
    if not later:
        return ""
    return f"{later[0].id}: {write_prompt(later[0].prompt)}"


def _example(timeline: Timeline, place: int) -> str:
    """A prompt for a request of this run."""
    later = still_to_come(timeline, place) or scenario_behind(timeline, place).requests
    return f"{later[0].id}: You are a support bot. | [tools 64]"


def _edit_prompt(timeline: Timeline, place: int, line: str) -> Change:
    line = line.lstrip()
    known = [spec.id for spec in scenario_behind(timeline, place).requests if line.startswith(f"{spec.id}:")]
    request = max(known, key=len) if known else line.partition(":")[0]  # an id may have a colon in it
    if not line.startswith(f"{request}:"):
        raise CannotAsk(f"write the request, a colon and its prompt: {_example(timeline, place)}")
    return EditPrompt(request.strip(), read_prompt(line[len(request) + 1 :].removeprefix(" ")))


def read_policy(line: str) -> dict[str, Any]:
    """`name=value`, one or several, as settings. Raises `CannotAsk`."""
    settings: dict[str, Any] = {}
    for word in re.sub(r"\s*=\s*", "=", line).split():
        name, sign, value = word.partition("=")
        if not sign or not name or not value:
            raise CannotAsk(f"{_short(word)!r}: write name=value, as queue_policy=lpm or max_num_seqs=2")
        if len(word) > LONGEST_SETTING:
            raise CannotAsk(f"{_short(word)!r}: no setting and no value is so long")
        if name in settings:
            raise CannotAsk(f"{name} stands there twice: write it once")
        settings[name] = read_value(value)
    if not settings:
        raise CannotAsk("nothing is typed: write name=value, as queue_policy=lpm or max_num_seqs=2")
    return settings


def policy_hint(timeline: Timeline, place: int) -> str:
    """The settings of this run with their values, and what else each could be."""
    words = []
    for name, value in timeline.policy_at(place).items():
        others = [other for other in settings_of(timeline.kind)[name] if other != value]
        words.append(f"{name}={value}" + (f" (or {', '.join(others)})" if others else ""))
    return f"Write name=value, one or several with spaces between. They are: {'; '.join(words)}."


def policy_suggestion(timeline: Timeline, place: int) -> str:
    """A setting of this run, and a value that it does not have."""
    values = timeline.policy_at(place)
    return "queue_policy=lpm" if values["queue_policy"] != "lpm" else "queue_policy=fcfs"


def _num_blocks(timeline: Timeline, place: int) -> int:
    """Blocks of the pool, the null block not counted."""
    return timeline.at(place).capacity


def _block_size(timeline: Timeline, place: int) -> int:
    return timeline.at(place).block_size


def _least_blocks(timeline: Timeline, place: int) -> int:
    """So many the longest request needs."""
    scenario, size = scenario_behind(timeline, place), _block_size(timeline, place)
    return max(scenario.blocks_of(spec, size) for spec in scenario.requests)


def _hint_num_blocks(timeline: Timeline, place: int) -> str:
    least, most = _least_blocks(timeline, place), MAX_TOKENS // _block_size(timeline, place)
    return (
        f"How many blocks the pool has: {_num_blocks(timeline, place):,} now, from {least:,}, which the longest "
        f"request needs, to {most:,}. The new pool is empty, and whoever runs starts again."
    )


def _hint_block_size(timeline: Timeline, place: int) -> str:
    return (
        f"Tokens of a block: {_block_size(timeline, place):,} now. The pool holds as many tokens as before, in "
        "blocks of that size. It is empty, and whoever runs starts again."
    )


def _hint_fewer(timeline: Timeline, place: int) -> str:
    return (
        f"How many of the pool's {_num_blocks(timeline, place):,} blocks are taken out: free ones, in the order in "
        "which they would be handed out. What they cache is evicted, the rest stays."
    )


def offers(player: Player) -> list[tuple[Ask, str]]:
    """What can be changed at this place, with what there is to say of each. Raises `BadChange` for a run that cannot be
    run again, of which nothing can."""
    offered = [(ask, ask.offer(player.timeline, player.place)) for ask in ASKS]
    return [(ask, words) for ask, words in offered if words is not None]


ASKS: Sequence[Ask] = (
    Ask(
        "Move the first part of each prompt after the second",
        _offer_move,
        lambda timeline, place: None,
        _move_first,
        from_start=True,
    ),
    Ask(
        "Another prompt for a request",
        _offer_prompt,
        _prompt_line,
        _edit_prompt,
        lambda timeline, place: (
            "REQUEST: PART | PART …  A part is text (\\| is a | of it), [name COUNT] for a text of that length, or "
            "[answer of REQUEST]."
        ),
        edit=True,
    ),
    Ask(
        "Another policy",
        lambda timeline, place: "Who is admitted, computed and evicted first: other settings from here on.",
        policy_suggestion,
        lambda timeline, place, line: SetPolicy(read_policy(line)),
        policy_hint,
    ),
    Ask(
        "Another number of blocks",
        lambda timeline, place: f"{_num_blocks(timeline, place):,} now. {STARTS_EMPTY}",
        lambda timeline, place: str(min(2 * _num_blocks(timeline, place), MAX_TOKENS // _block_size(timeline, place))),
        lambda timeline, place, line: SetNumBlocks(whole(line, "how many blocks the pool has, such as 64")),
        _hint_num_blocks,
    ),
    Ask(
        "Fewer blocks",
        lambda timeline, place: "Some are taken away. What is in the others stays.",
        lambda timeline, place: str(max(1, _num_blocks(timeline, place) // 16)),
        lambda timeline, place, line: ShrinkPool(whole(line, "how many blocks to take away, such as 4")),
        _hint_fewer,
    ),
    Ask(
        "Another block size",
        lambda timeline, place: f"{_block_size(timeline, place):,} now. {STARTS_EMPTY}",
        lambda timeline, place: str(max(1, _block_size(timeline, place) // 2)),
        lambda timeline, place, line: SetBlockSize(whole(line, "the tokens of a block, such as 16")),
        _hint_block_size,
    ),
    Ask(
        "Nothing: a branch that comes out the same",
        lambda timeline, place: "To compare with, or to change later on.",
        lambda timeline, place: None,
        lambda timeline, place, line: None,
    ),
)


def forked(player: Player, ask: Ask, line: str) -> Player:
    """The fork that the line asks for, at the player's step. Raises `BadChange`, `BadPrompt`, `NoNumber` or
    `CannotAsk`."""
    if not ask.from_start:
        return player.fork(ask.read(player.timeline, player.place, line))
    change = ask.read(player.timeline, -1, line)
    assert change is not None
    branch = Player(player.timeline.fork_from_start(change), decode=player.decode, parent=player)
    if player.step_now:
        branch.seek_step(min(player.step_now, branch.num_steps))
    return branch
