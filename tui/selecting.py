"""What is selected in a run, and what therefore is looked at: a request in focus, blocks that are marked."""

from minicache.core import events as ev
from minicache.sim.errors import UnknownThing
from minicache.sim.explainer import no_request
from minicache.sim.timeline import Timeline

from .model.rows import NOTHING, Selection
from .moves import Moves


class Selecting(Moves):
    """The part of a player that selects. A move lets go of a selection that is not there afterwards."""

    def __init__(self, timeline: Timeline) -> None:
        super().__init__(timeline)
        self.index = timeline.index
        self.selection = NOTHING

    def select(self, selection: Selection) -> None:
        if selection != self.selection:
            self.selection = selection
            self.version += 1

    def seek(self, place: int) -> bool:
        """Go to a place, and let go of a selection that is not there, or that was a place itself."""
        moved = super().seek(place)
        if moved and not self._is_here(self.selection):
            self.selection = NOTHING
        return moved

    def _is_here(self, selection: Selection) -> bool:
        view = self.view
        match selection.kind, selection.id:
            case "request", str(request):
                return request in view.requests or request in view.ended
            case "token", (str(request), int(position)):
                known = view.requests.get(request) or view.ended.get(request)
                return known is not None and position < len(known.tokens)
            case "node", int(node):
                return node in view.nodes
            case "block", int(block):
                return block < view.num_blocks
        return False

    def go_to_request(self, request: str) -> bool:
        """To where a request arrives, and select it. Raises `UnknownThing` with what there is."""
        record = self.index.requests.get(request)
        if record is None:
            ids = list(self.index.requests)
            if not ids:
                raise UnknownThing(f"this run has no request {request!r}: none has arrived yet")
            raise UnknownThing(no_request(request, ids))
        moved = self.seek(record.arrived)
        self.select(Selection("request", request))
        return moved

    @property
    def focus_request(self) -> str | None:
        """The request that is selected, else the one that the current event is about, else the last before that."""
        match self.selection.kind, self.selection.id:
            case ("request", str(chosen)) | ("token", (str(chosen), int())) if self._is_here(self.selection):
                return chosen
        for place in range(self.place, -1, -1):
            request = getattr(self.timeline.events[place], "request", None)
            if request in self.index.requests:
                return str(request)
        return None

    def chosen_blocks(self) -> frozenset[int]:
        """The blocks of whatever is selected; where nothing is, those that the current event found, if it is a
        lookup."""
        view = self.view
        match self.selection.kind, self.selection.id:
            case "block", int(block):
                return frozenset((block,))
            case "request", str(request):
                return frozenset(view.tables.get(request, ()))
            case "node", int(node):
                return frozenset(view.nodes[node].blocks if node in view.nodes else ())
            case "event", int(place):
                return frozenset(self.found_by(place) or getattr(self.timeline.require(place), "blocks", ()))
            case "token", (str(request), int(position)):
                table = view.tables.get(request, ())
                return frozenset(table[position // view.block_size :][:1])
        return frozenset(self.found_by(self.place))

    def found_by(self, place: int) -> tuple[int, ...]:
        """The blocks that a lookup found, in the order of the prompt: its request adopts them next, if it is admitted.
        None of any other event."""
        lookup, adoption = self.timeline.require(place, -1), self.timeline.next(place, "BlocksAdopted")
        if not isinstance(lookup, ev.PrefixMatched) or adoption is None:
            return ()
        later = self.timeline.next(place, "PrefixMatched")
        adopted = self.timeline.events[adoption]
        assert isinstance(adopted, ev.BlocksAdopted)
        return adopted.blocks if later is None or adoption < later else ()
