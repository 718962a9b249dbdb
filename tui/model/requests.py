"""The rows of the queue: who runs, who waits, who is over."""

from collections.abc import Iterator
from itertools import islice

from minicache.core.views import EngineView, RequestView

from .rows import RequestRow, State
from .run_index import RunIndex

ENDED = 200  # so many of those that are over have a row, the latest

_OVER: dict[str, State] = {"finished": "done", "aborted": "aborted"}


def request_rows(view: EngineView, index: RunIndex, place: int) -> list[RequestRow]:
    """Those that run, in the order of admission; those that wait, in their order; those that are over, newest first."""
    rows = [_row(id, view.requests[id], _phase(view.requests[id])) for id in view.running]
    for id in view.waiting:
        request = view.requests[id]
        rows.append(_row(id, request, "preempted" if request.status == "preempted" else "waiting"))
    rows += islice(_over(view, index, place), ENDED)
    return rows


def _phase(request: RequestView) -> State:
    """A request prefills until all tokens that it had when it was admitted are computed."""
    return "decode" if len(request.tokens) - request.num_computed_tokens <= 1 and _said(request) else "prefill"


def _said(request: RequestView) -> int:
    return len(request.tokens) - request.num_prompt_tokens


def _row(id: str, request: RequestView, state: State) -> RequestRow:
    return RequestRow(
        id,
        state,
        request.num_prompt_tokens,
        request.num_cached_tokens,
        request.num_computed_tokens,
        len(request.tokens),
        _said(request),
        request.max_tokens,
        request.num_preemptions,
    )


def _over(view: EngineView, index: RunIndex, place: int) -> Iterator[RequestRow]:
    refused = [row for row in index.rejections if row[0] <= place]
    for id in reversed(view.ended):
        request = view.ended[id]
        yield _row(id, request, _OVER[request.status])
    for _, id in reversed(refused):
        yield RequestRow(id, "refused", 0, None, 0, 0, 0, 0)
