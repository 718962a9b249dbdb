"""Looking for something by what a person remembers of it: a number, a hash, a name, a piece of a prompt."""

import re
from collections.abc import Callable, Iterator

from minicache.core.views import EngineView
from minicache.sim.phrases import short_hash
from minicache.sim.run_index import RunIndex
from minicache.sim.timeline import Timeline

from ..numbers import MOST_DIGITS
from .rows import Found, Selection

MOST = 20
AROUND = 12  # characters shown on both sides of a piece of prompt
_HEX = re.compile(r"[0-9a-f]{3,}")
_NODE = re.compile(r"(?:node |n)(\d+)")


def find(text: str, view: EngineView, index: RunIndex, timeline: Timeline, prompt: Callable[[str], str]) -> list[Found]:
    """At most `MOST` things: the block of that number, a node, hashes that begin so, requests of that name, and
    prompts that contain the text. `prompt` gives the text of a request's prompt."""
    text = text.strip()
    found: list[Found] = []
    if text:
        sources = _blocks(text, view), _nodes(text, view), _hashes(text, view), _requests(text, view, index, prompt)
        for source in sources:
            found += source
    return found[:MOST]


def _blocks(text: str, view: EngineView) -> Iterator[Found]:
    number = _number(text.removeprefix("block ").removeprefix("b"))
    if number is not None and number < view.num_blocks:
        yield Found(f"block b{number}", Selection("block", number))


def _nodes(text: str, view: EngineView) -> Iterator[Found]:
    match = _NODE.fullmatch(text)
    number = _number(match[1]) if match else None
    if number in view.nodes:
        yield Found(f"node {number}", Selection("node", number))


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else None


def _hashes(text: str, view: EngineView) -> Iterator[Found]:
    if _HEX.fullmatch(text.lower()):
        for block, hash in view.hashes.items():
            if hash.hex().startswith(text.lower()):
                yield Found(f"block b{block}, hash {short_hash(hash)}…", Selection("block", block))


def _requests(text: str, view: EngineView, index: RunIndex, prompt: Callable[[str], str]) -> Iterator[Found]:
    """First those whose name it is, then those whose name contains it, then prompts. One that is here is looked at
    where we are; to another one we go."""

    def found(id: str, words: str) -> Found:
        here = id in view.requests or id in view.ended
        return Found(words, Selection("request", id), None if here else index.requests[id].arrived)

    names = sorted((id for id in index.requests if text.lower() in id.lower()), key=lambda id: id != text)
    yield from (found(id, f"request {id}") for id in names)
    for id in index.requests:
        words = prompt(id)
        at = words.lower().find(text.lower())
        if at >= 0 and id not in names:
            around = words[max(0, at - AROUND) : at + len(text) + AROUND]
            yield found(id, f"request {id}: …{around}…")
