"""The rows of the queue: who runs, who waits, who is over."""

from collections.abc import Iterator
from itertools import islice

from minicache.core.views import EngineView, RequestView
from minicache.sim.run_index import RunIndex

from .rows import RequestRow, State

ENDED = 200  # so many of those that are over have a row, the latest

_OVER: dict[str, State] = {"finished": "done", "aborted": "aborted"}


class Requests:
    """Makes the rows. Those of requests that are over are kept: nothing happens to them any more."""

    def __init__(self, index: RunIndex) -> None:
        self.index = index
        self._ended: dict[str, RequestRow] = {}

    def rows(self, view: EngineView, place: int) -> list[RequestRow]:
        """Those that run, in the order of admission; those that wait, in their order; those that are over, newest
        first."""
        rows = [self._row(id, view.requests[id], _phase(view.requests[id]), place) for id in view.running]
        for id in view.waiting:
            request = view.requests[id]
            rows.append(self._row(id, request, "preempted" if request.status == "preempted" else "waiting", place))
        rows += islice(self._over(view, place), ENDED)
        return rows

    def _over(self, view: EngineView, place: int) -> Iterator[RequestRow]:
        for id in reversed(view.ended):
            row = self._ended.get(id)
            if row is None:
                request = view.ended[id]
                row = self._ended[id] = self._row(id, request, _OVER[request.status], place)
            yield row
        for refused, id in reversed(self.index.rejections):
            if refused <= place:
                yield RequestRow(id, "refused", 0, None, 0, 0, 0, 0)

    def _row(self, id: str, request: RequestView, state: State, place: int) -> RequestRow:
        admission = self.index.last_admission(id, place)
        found = 0 if admission is None else getattr(self.index.events[admission], "num_cached_tokens", 0)
        return RequestRow(
            id,
            state,
            request.num_prompt_tokens,
            request.num_cached_tokens,
            self.index.num_computed(id, place),
            len(request.tokens),
            _said(request),
            request.max_tokens,
            request.num_preemptions,
            request.num_computed_tokens,
            found,
        )


def _phase(request: RequestView) -> State:
    """A request prefills until all tokens that it had when it was admitted are computed."""
    return "decode" if len(request.tokens) - request.num_computed_tokens <= 1 and _said(request) else "prefill"


def _said(request: RequestView) -> int:
    return len(request.tokens) - request.num_prompt_tokens
