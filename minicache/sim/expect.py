"""The comparison of a run with the figures that its scenario expects."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from minicache.sim.figures import PER_REQUEST
from minicache.sim.run_index import RequestRecord, RunIndex
from minicache.sim.scenario import Expect


def mismatches(expect: Expect, index: RunIndex) -> list[str]:
    """A sentence for each figure that differs from the expected one; empty if all agree."""
    return [*_of_requests(expect, index), *_of_totals(expect, index)]


def _of_requests(expect: Expect, index: RunIndex) -> Iterator[str]:
    for figure, patterns in expect.per_request.items():
        for pattern, value in patterns.items():
            found = _matching(pattern, index)
            if not found:
                yield f"expect.{figure}: no request is called {pattern}"
            for request in found:
                actual = getattr(request, PER_REQUEST[figure])
                if actual != value:
                    yield f"expect.{figure}.{request.id} is {value}, and the run has {actual}"


def _matching(pattern: str, index: RunIndex) -> list[RequestRecord]:
    if pattern in index.requests:
        return [index.requests[pattern]]
    return [request for id, request in index.requests.items() if fnmatchcase(id, pattern)]


def _of_totals(expect: Expect, index: RunIndex) -> Iterator[str]:
    totals, rates = index.totals, index.hit_rates
    for name, value in expect.totals.items():
        if totals[name] != value:
            yield f"expect.{name} is {value}, and the run has {totals[name]}"
    for name, percent in expect.hit_rate.items():
        actual = round(100 * rates[name], 1)
        if actual != percent:
            yield f'expect.hit_rate."{name}" is {percent} %, and the run has {actual} %'
