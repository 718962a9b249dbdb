"""Where in a run something happens to a request, a block or a node: gathered in one reading that can go on."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from minicache.core import events as ev
from minicache.sim.timeline import Timeline

_NONE = array("q")


class Places:
    """The places of a timeline, which may grow: `update` reads what is new. What it gives ascends."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.requests: dict[str, array[int]] = {}
        self._blocks: dict[int, array[int]] = {}
        self._nodes: dict[int, array[int]] = {}
        self._num_read = 0

    def update(self) -> None:
        events = self.timeline.events
        for place in range(self._num_read, len(events)):
            event = events[place]
            request = getattr(event, "request", None)
            if request is not None:
                self.requests.setdefault(request, array("q")).append(place)
            for block in dict.fromkeys(getattr(event, "blocks", ())):
                self._blocks.setdefault(block, array("q")).append(place)
            for node in _nodes_of(event):
                self._nodes.setdefault(node, array("q")).append(place)
        self._num_read = len(events)

    def of_request(self, request: str, last: int) -> "array[int]":
        """The events of a request up to place `last`."""
        return _between(self.requests.get(request, _NONE), 0, last)

    def of_block(self, block: int, first: int, last: int) -> "array[int]":
        """The events that name a block, of those from `first` to `last`."""
        return _between(self._blocks.get(block, _NONE), first, last)

    def of_node(self, node: int, last: int) -> "array[int]":
        """The events in which a node of the tree was made, cut or evicted, up to place `last`."""
        return _between(self._nodes.get(node, _NONE), 0, last)


def _nodes_of(event: ev.Event) -> Iterable[int]:
    match event:
        case ev.BlocksPublished() if event.node is not None:
            return (event.node,)
        case ev.NodeSplit():
            return (event.node, event.upper)
        case ev.NodesEvicted():
            return event.nodes
    return ()


def _between(places: "array[int]", first: int, last: int) -> "array[int]":
    return places[bisect_left(places, first) : bisect_right(places, last)]
