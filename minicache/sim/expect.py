"""Whether a run came out as its scenario says."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from minicache.sim.scenario import Expect
from minicache.sim.summary import RATES, TOTALS, RequestFigures, Summary

PER_REQUEST = {
    "hit_tokens": "cached_tokens",
    "end": "end",
    "computed_tokens": "computed_tokens",
    "preemptions": "preemptions",
}

__all__ = ["PER_REQUEST", "RATES", "TOTALS", "mismatches"]


def mismatches(expect: Expect, summary: Summary) -> list[str]:
    """A sentence for each figure that is not as expected; empty when all are."""
    return [*_of_requests(expect, summary), *_of_totals(expect, summary)]


def _of_requests(expect: Expect, summary: Summary) -> Iterator[str]:
    for figure, patterns in expect.per_request.items():
        for pattern, value in patterns.items():
            found = _matching(pattern, summary)
            if not found:
                yield f"expect.{figure}: no request is called {pattern}"
            for request in found:
                actual = getattr(request, PER_REQUEST[figure])
                if actual != value:
                    yield f"expect.{figure}.{request.id} is {value}, and the run has {actual}"


def _matching(pattern: str, summary: Summary) -> list[RequestFigures]:
    if pattern in summary.requests:
        return [summary.requests[pattern]]
    return [request for id, request in summary.requests.items() if fnmatchcase(id, pattern)]


def _of_totals(expect: Expect, summary: Summary) -> Iterator[str]:
    for name, value in expect.totals.items():
        if summary.totals[name] != value:
            yield f"expect.{name} is {value}, and the run has {summary.totals[name]}"
    for name, percent in expect.hit_rate.items():
        actual = round(100 * summary.hit_rates[name], 1)
        if actual != percent:
            yield f'expect.hit_rate."{name}" is {percent} %, and the run has {actual} %'
