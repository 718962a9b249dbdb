"""Cases: everything that one run depends on, as data that can be written to a file, read and run again.

`AnswersCase` serves a workload with and without a cache, as in `test_cached_equals_uncached.py`. `CoreCase` runs a
history of calls under all laws of the core, as in `core/`. `tests/prove.py` searches for cases that break a law.
"""

import itertools
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, fields, replace
from math import isfinite
from typing import Any, Protocol

import torch
from hypothesis import strategies as st

from minicache.core import SchedulerConfig, StepPlan
from minicache.core.event_log import to_json as event_to_json
from minicache.core.events import Event, TokensSampled
from minicache.engine import Engine, SamplingParams
from tests.core.laws import WATCHERS
from tests.core.world import Guard, History, Settings, Watcher, histories
from tests.properties.serving import FAMILIES, VOCABULARY, ModelFailed, Prompt, Run, assert_same, serve
from tests.properties.workloads import (
    eager_profile_for,
    eventful,
    make_cache,
    settings_for,
    small_pool,
    uncached,
    workloads,
)

Object = dict[str, Any]
EVENTS_BEFORE, EVENTS_AFTER = 20, 5
TOLERANCE = 1e-9


class Broken(Exception):
    """The case broke a law. `report` says how, and at which event it first showed."""

    def __init__(self, report: Object) -> None:
        super().__init__(report["what"])
        self.report = report


class Case(Protocol):
    def hold(self) -> Counter[str]:
        """Run the case. Returns how often each kind of event happened. Raises `Broken`."""
        ...

    def to_json(self) -> Object: ...


class Trouble:
    """The moments at which the model fails, before or after it computes, and those at which a request is aborted."""

    def __init__(self, choices: Iterator[str]) -> None:
        self.choices = choices

    def __call__(self, engine: Engine, plan: StepPlan | None, when: str) -> None:
        choice = next(self.choices)
        if choice == "fail" and plan is not None:
            raise ModelFailed
        if choice == "abort" and plan is None and engine.has_unfinished:
            engine.abort(list(engine._samples)[-1])
        if choice == "abort" and plan:
            request = plan.scheduled[-1].request
            if not request.status.is_final:
                engine.scheduler.abort(request.id)


@dataclass(frozen=True)
class AnswersCase:
    """A workload, the cache and scheduler that serve it, and its troubles."""

    kind: str
    block_size: int
    num_blocks: int
    family: str
    scheduler: SchedulerConfig
    prompts: tuple[Prompt, ...]
    troubles: tuple[str, ...] = ()

    def hold(self) -> Counter[str]:
        run = Run()
        trouble = Trouble(itertools.chain(self.troubles, itertools.repeat("")))
        try:
            serve(
                self.prompts,
                make_cache(self.kind, self.num_blocks, self.block_size),
                self.scheduler,
                trouble,
                self.family,
                run=run,
            )
        except Exception as error:
            raise Broken(_broke_off(error, run.events)) from error
        control = uncached(self.block_size, list(self.prompts), self.family)
        try:
            assert_same(run, control)
        except AssertionError as error:
            lengths = {f"r{index}": len(prompt.tokens) for index, prompt in enumerate(self.prompts)}
            raise Broken(first_difference(run, control, lengths) or _told(error)) from error
        return run.seen

    def to_json(self) -> Object:
        return {
            "law": "a prefix cache never changes an answer",
            "settings": {
                "kind": self.kind,
                "block_size": self.block_size,
                "num_blocks": self.num_blocks,
                "family": self.family,
                "scheduler": asdict(self.scheduler),
            },
            "requests": [_request(index, prompt) for index, prompt in enumerate(self.prompts)],
            "troubles": list(self.troubles),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "AnswersCase":
        prompts = [
            Prompt(tuple(r["tokens"]), SamplingParams(**r["params"]), r["arrives"], r["priority"])
            for r in value["requests"]
        ]
        settings = value["settings"] | {"scheduler": SchedulerConfig(**value["settings"]["scheduler"])}
        return cls(**settings, prompts=tuple(prompts), troubles=tuple(value["troubles"]))


def _request(index: int, prompt: Prompt) -> Object:
    """The request as data, with only the parameters that differ from the defaults."""
    chosen = {f.name: getattr(prompt.params, f.name) for f in fields(SamplingParams) if f.default is not MISSING}
    changed = {name: value for name, value in chosen.items() if value != getattr(SamplingParams(), name)}
    place = {"arrives": prompt.arrives, "priority": prompt.priority}
    return {"id": f"r{index}", "tokens": list(prompt.tokens), "params": changed, **place}


def first_difference(run: Run, control: Run, prompt_lengths: Mapping[str, int]) -> Object | None:
    """The first sampled token that differs from the control, or was drawn from different logits."""
    drawn: Counter[str] = Counter()
    for index, event in enumerate(run.events):
        if not isinstance(event, TokensSampled):
            continue
        for token in event.tokens:
            name = event.request
            position = prompt_lengths[name.partition("/")[0]] + drawn[name]
            rows, [expected, *_] = run.logits[name, position], control.logits[name, position]
            other = control.tokens[name][drawn[name]]
            worst = max(rows, key=lambda row: float((row - expected).abs().nan_to_num(nan=float("inf")).max()))
            apart = float((worst - expected).abs().max())
            drawn[name] += 1
            if token == other and apart <= TOLERANCE:  # NaN is not
                continue
            tokens = f"token {token} with the cache, {other} without" if token != other else f"token {token} in both"
            logits = "NaN among the logits: KV that was never computed" if apart != apart else f"{apart:.3g} in a logit"
            return {
                "what": f"{name}, position {position}: {tokens}; {logits}",
                "request": name,
                "position": position,
                "with_cache": {"token": token, "logits": _numbers(worst)},
                "without_cache": {"token": other, "logits": _numbers(expected)},
                **_around(run.events, index),
                "request_before": _compact(e for e in run.events[:index] if getattr(e, "request", None) == name),
            }
    return None


def _numbers(logits: torch.Tensor) -> list[float | None]:
    return [value if isfinite(value) else None for value in logits.tolist()]


def _around(events: list[Event], index: int) -> Object:
    return {
        "event": event_to_json(events[index]) if events else None,
        "before": _compact(events[max(0, index - EVENTS_BEFORE) : index]),
        "after": _compact(events[index + 1 : index + 1 + EVENTS_AFTER]),
    }


def _compact(events: Iterable[Event]) -> list[str]:
    """One line per event: `17 step 3 BlocksAdopted request=r1 blocks=[4, 5]`."""
    lines = []
    for event in events:
        record = event_to_json(event)
        head = f"{record.pop('seq')} step {record.pop('step')} {record.pop('type')}"
        del record["time"]
        lines.append(" ".join([head, *(f"{name}={value}" for name, value in record.items())]))
    return lines


def _broke_off(error: Exception, events: list[Event]) -> Object:
    """The report of a run that the cache or a law stopped before any token differed; the last event is nearest to the
    fault."""
    [*_, last] = traceback.extract_tb(error.__traceback__)
    where = f"{last.name}, {last.filename.rpartition('/')[2]}:{last.lineno}: {last.line}"
    what = f"broke off: {type(error).__name__} {error}".rstrip() + f" (in {where})"
    return {"what": what, **_around(events, len(events) - 1)}


def _told(error: AssertionError) -> Object:
    return {
        "what": f"equal tokens from equal logits, but something reported about them differs: {error}",
        "event": None,
    }


@st.composite
def answers(draw: st.DrawFn, kind: str, troubled: bool | None = None) -> AnswersCase:
    """Any workload, with or without troubles. `None`: every second one has some."""
    block_size, prompts = draw(workloads())
    spare = draw(st.sampled_from([0, 0, 1, 3]))
    what = st.sampled_from(["", "", "", "", "fail", "abort"])
    if troubled is None:
        troubled = draw(st.booleans())
    return AnswersCase(
        kind,
        block_size,
        small_pool(block_size, prompts, spare),
        draw(st.sampled_from(list(FAMILIES))),
        draw(settings_for(kind)),
        tuple(prompts),
        (draw(st.sampled_from(["fail", ""])), *draw(st.lists(what, max_size=30))) if troubled else (),
    )


def eventful_case(kind: str, family: str = "llama", troubles: tuple[str, ...] = ()) -> AnswersCase:
    """A case with hits, evictions and preemptions. With troubles it has one before, one after and one between two
    steps."""
    block_size, prompts = eventful()
    pool = small_pool(block_size, prompts, spare=2)
    return AnswersCase(kind, block_size, pool, family, eager_profile_for(kind), tuple(prompts), troubles)


def eventful_cases(kind: str) -> list[AnswersCase]:
    """Eventful cases with a model of each family, and one in which half of all tokens end an answer."""
    cases = [eventful_case(kind, family) for family in FAMILIES]
    short = [replace(p, params=replace(p.params, stop_tokens=range(VOCABULARY // 2))) for p in cases[0].prompts]
    return [*cases, replace(cases[0], prompts=tuple(short))]


def troubled_cases(kind: str) -> list[AnswersCase]:
    """Cases in which the model fails in the first step, where prompts are found before they are computed, if ever, and
    later; and in which requests are aborted in the middle of a step and between two steps."""
    step = ("", "", "")
    return [
        eventful_case(kind, troubles=troubles)
        for troubles in (("fail",), (*step, "fail", "", "", "", "abort", "fail"), (*step, "", "fail", "", "abort"))
    ]


@dataclass(frozen=True)
class CoreCase:
    """A history of calls, without a model."""

    history: History

    def hold(self) -> Counter[str]:
        events: list[Event] = []

        class Remembers(Watcher):
            def __init__(self, world: Any) -> None:
                super().__init__(world)
                world.stream.sinks.append(events.append)

        guard = Names()
        try:
            return self.history.run(Remembers, *WATCHERS, guard=guard)
        except Exception as error:
            law = f"{guard.law.__name__}: {' '.join((guard.law.__doc__ or '').split())} " if guard.law else ""
            raise Broken({"law": law} | _broke_off(error, events)) from error

    def to_json(self) -> Object:
        return {
            "law": "the laws of the core",
            "world": self.history.world,
            "settings": asdict(self.history.settings),
            "operations": [list(operation) for operation in self.history.operations],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "CoreCase":
        operations = tuple(tuple(operation) for operation in value["operations"])
        return cls(History(value["world"], Settings(**value["settings"]), operations))


class Names(Guard):
    """A guard that remembers which law broke."""

    def __init__(self) -> None:
        self.law: type[Watcher] | None = None

    def __call__(self, law: Watcher, moment: Any, *args: Any) -> None:
        try:
            moment(*args)
        except Exception:
            self.law = self.law or type(law)
            raise


def core(world: str, kind: str) -> st.SearchStrategy[CoreCase]:
    return st.builds(CoreCase, histories(world, kind))


def case_from_json(value: Mapping[str, Any]) -> Case:
    """The case from the data that `to_json` made."""
    return (CoreCase if "operations" in value else AnswersCase).from_json(value)
