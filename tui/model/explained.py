"""Explain, for whatever is selected. The sentences about events are the simulator's."""

from collections.abc import Callable, Iterable

from minicache.core import events as ev
from minicache.core.views import EngineView
from minicache.sim.errors import UnknownThing
from minicache.sim.explainer import Account, Explained, explain_block, explain_event, explain_request
from minicache.sim.narrator import Narrator
from minicache.sim.phrases import plural, requests_do
from minicache.sim.run_index import RunIndex

from .rows import Selection


def explain_selection(
    selection: Selection,
    place: int,
    view: EngineView,
    narrator: Narrator,
    index: RunIndex,
    text: Callable[[int], str],
) -> Explained:
    """Raises `UnknownThing` if there is no such thing at `place`. `text` says what a node holds."""
    timeline = narrator.timeline
    match selection.kind, selection.id:
        case "event", int(event):
            return explain_event(timeline, event, narrator)
        case "request", str(request):
            return explain_request(timeline, request, place, narrator, view)
        case "block", int(block):
            return explain_block(timeline, block, place, narrator, view)
        case "node", int(node):
            return _explain_node(node, place, view, narrator, text)
        case "token", (str(request), int(position)):
            return _explain_token(request, position, place, view, narrator, index)
    if place < 0:
        return Explained("the beginning", "Nothing has happened yet.", [])
    return explain_event(timeline, place, narrator)


def accounts(narrator: Narrator, places: Iterable[int]) -> list[Account]:
    """The events at these places, described."""
    return list(map(Account.of, narrator.lines(places)))


def _explain_node(id: int, place: int, view: EngineView, narrator: Narrator, text: Callable[[int], str]) -> Explained:
    places = narrator.timeline.index.of_node(id, place)
    node = view.nodes.get(id)
    if node is None:
        if not places:
            raise UnknownThing(f"there is no node {id} at event {place}")
        return Explained(f"node {id}", f"Node {id} is not in the tree any more.", accounts(narrator, places))
    below = f"below node {node.parent}" if node.parent else "below the root"
    children = sum(other.parent == id for other in view.nodes.values())
    if node.locks:
        fate = f"{requests_do(node.locks, 'lock')} it, so it cannot be evicted"
    elif children:
        fate = f"no request locks it, and {plural(children, 'node')} below it must be evicted before it"
    else:
        fate = "no request locks it and no node is below it, so it can be evicted"
    summary = (
        f"Node {id}, {below}, holds {plural(len(node.tokens), 'token')} in {plural(len(node.blocks), 'block')}, "
        f'"{text(id)}": {fate}. Its hit count is {node.hits}{"; making it counted as the first" if node.hits else ""}.'
    )
    return Explained(f"node {id}", summary, accounts(narrator, places))


def _explain_token(
    request: str, position: int, place: int, view: EngineView, narrator: Narrator, index: RunIndex
) -> Explained:
    known = view.requests.get(request) or view.ended.get(request)
    if known is None or not 0 <= position < len(known.tokens):
        raise UnknownThing(f"{request} has no token {position} at event {place}")
    table, number = view.tables.get(request, []), position // view.block_size
    where = f"is in block b{table[number]}" if number < len(table) else "has no block of the pool yet"
    lookup = index.last_lookup(request, place)
    found = narrator.timeline.events[lookup] if lookup is not None else None
    hit = found.num_tokens if isinstance(found, ev.PrefixMatched) else 0
    if position < hit:
        how = "was found in the cache"
    elif position < known.num_computed_tokens:
        how = "was computed"
    else:
        how = "has no KV yet"
    kind = "prompt" if position < known.num_prompt_tokens else "answer"
    summary = f"Token {position:,} of {request}, of its {kind}, {where} and {how}."
    return Explained(
        f"token {position:,} of {request}", summary, accounts(narrator, [lookup] if lookup is not None else [])
    )
