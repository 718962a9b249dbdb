"""The output of `minicache sim`."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from minicache.cli.console import print_json, say, stdout, writing
from minicache.common.files import require_writable
from minicache.common.printable import shell_words
from minicache.core.event_log import to_json
from minicache.core.events import PoolReplaced
from minicache.sim.cost_model import CostModel
from minicache.sim.expect import mismatches
from minicache.sim.explainer import Explained
from minicache.sim.figures import RATES
from minicache.sim.library import find_scenario, scenario_names
from minicache.sim.lock_step import partings, report
from minicache.sim.phrases import GLOSSARY, plural
from minicache.sim.recorded import write_recorded
from minicache.sim.run_index import RunIndex
from minicache.sim.scenario import CACHE_NAMES, GROUPS, Kind
from minicache.sim.timeline import Timeline
from minicache.sim.transcript import transcript
from minicache.sim.words import reason_in_short

Timelines = Mapping[Kind, Timeline]


def print_list(as_json: bool) -> None:
    scenarios = sorted(map(find_scenario, scenario_names()), key=lambda s: (GROUPS.index(s.group), s.name))
    if as_json:
        print_json(
            [
                {"name": s.name, "title": s.title, "group": s.group, "caches": list(s.kinds), "story": s.story}
                for s in scenarios
            ]
        )
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    for group, members in groupby(scenarios, key=lambda s: s.group):
        table.add_row(group, "", style="bold")
        for scenario in members:
            table.add_row(f"  {scenario.name}", scenario.title)
    stdout().print(table)
    stdout().print()
    stdout().print("`minicache sim run NAME` runs one; with --plain it describes every event.")


def mismatches_of(timelines: Timelines) -> list[str]:
    """A sentence for each figure of each run that differs from the figure that the scenario expects."""
    return [
        f"{kind}: {sentence}"
        for kind, timeline in timelines.items()
        if timeline.scenario is not None and kind in timeline.scenario.expect
        for sentence in mismatches(timeline.scenario.expect[kind], timeline.index)
    ]


def write_logs(timelines: Timelines, path: Path, source: str) -> None:
    """Write the log of one run, or of two runs into two files, FILE.hash.jsonl and FILE.radix.jsonl. `source` is the
    name of the scenario or log, which is not overwritten."""
    with writing("--events", path):
        require_writable(path, source)
    for kind, timeline in timelines.items():
        file = path if len(timelines) == 1 else path.with_name(f"{path.stem}.{kind}{path.suffix or '.jsonl'}")
        with writing("--events", file):
            write_recorded(timeline, require_writable(file, source))


def print_json_of(timelines: Timelines, wrong: list[str]) -> None:
    """Print `{scenario, cache, events, requests, summary}`, or for two runs two such objects and where they diverge."""
    runs = [_run_json(kind, timeline) for kind, timeline in timelines.items()]
    result: dict[str, Any]
    if len(runs) == 1:
        result = runs[0]
    else:
        found = [parting.to_json() for parting in partings(dict(timelines))]
        result = {"scenario": runs[0]["scenario"], "runs": runs, "partings": found}
    result["mismatches"] = wrong
    print_json(result, indent=None)


def _run_json(kind: Kind, timeline: Timeline) -> dict[str, Any]:
    summary = timeline.index
    return {
        "scenario": timeline.settings.get("scenario"),
        "cache": kind,
        "settings": timeline.settings,
        "events": [to_json(event) for event in timeline.events],
        "requests": [request.to_json(summary.clock) for request in summary.requests.values()],
        "summary": summary.to_json(),
    }


def print_plain(timelines: Timelines) -> None:
    """Print every event as a sentence, then the figures."""
    if len(timelines) == 2:
        say(LOCK_STEP, "")
    for number, (kind, timeline) in enumerate(timelines.items()):
        if number:
            say("")
        say(*_head(kind, timeline, first=not number))
        for line in transcript(timeline):
            say(line)
        say("", *_figures(timeline))
    if len(timelines) == 2:
        say("", *report(partings(dict(timelines))))


LOCK_STEP = "Both caches run in lock-step, on one clock that waits for the slower of the two."


def _head(kind: Kind, timeline: Timeline, first: bool = True) -> Iterator[str]:
    """Print the settings of a run; before the `first` of two caches also the story, and the model and device of the
    times."""
    scenario = timeline.scenario
    settings = timeline.settings
    if first:
        yield scenario.title if scenario else str(settings.get("title", "A recorded run"))
    if scenario:
        if first:
            yield scenario.story
            yield timeline.token_words.unit
            yield CostModel.named(scenario.model, scenario.device).describe()
        meaning = GLOSSARY[CACHE_NAMES[kind]]
        yield f"{'The' if first else 'The other'} cache: {scenario.caches[kind].describe()}; that is {meaning}."
    else:
        yield f"The cache: {kind}, {settings['num_blocks'] - 1} blocks of {settings['block_size']}."
        yield from _later_pools(timeline)
        yield f"The clock: {settings.get('clock', 'as recorded')}."


def _later_pools(timeline: Timeline) -> Iterator[str]:
    """The pools that replaced the first one, in a line; nothing for a run with one pool."""
    events = [timeline.events[place] for place in timeline.index.of_kind("PoolReplaced")]
    pools = [f"{e.num_blocks - 1:,} blocks of {e.block_size:,}" for e in events if isinstance(e, PoolReplaced)]
    if pools:
        yield f"The pool was replaced by one of {', then '.join(pools)}."


def _figures(timeline: Timeline) -> Iterator[str]:
    summary = timeline.index
    totals = summary.totals
    yield (
        f"{plural(len(summary.requests), 'request')} with {summary.prompt_tokens:,} prompt tokens, of which "
        f"{summary.cached_tokens:,} were cached; {totals['computed_tokens']:,} tokens were computed in "
        f"{totals['steps']:,} steps, {totals['output_tokens']:,} generated."
    )
    yield (
        f"Blocks: at most {totals['peak_blocks']:,} of {summary.capacity:,} in use, "
        f"{totals['evicted_blocks']:,} evicted, {totals['duplicates_freed']:,} duplicates freed. Preemptions: "
        f"{totals['preemptions']:,}. At most {plural(totals['max_waiting'], 'request')} waited at once."
    )
    for name, value in summary.hit_rates.items():
        yield f"Hit rate, {name}: {value:.1%}. {RATES[name]}"
    modelled = " (modelled)" if timeline.is_modelled else ""
    ttfts = sorted(request.ttft for request in summary.requests.values() if request.ttft is not None)
    if ttfts:
        yield (
            f"Time to first token{modelled}: median {1000 * ttfts[len(ttfts) // 2]:.0f} ms, longest "
            f"{1000 * ttfts[-1]:.0f} ms; the whole run {summary.seconds:.2f} s{modelled}."
        )


SHOWN = 40  # requests in a table
LONGEST_ID = 32  # characters of an id in it


def print_summary(timelines: Timelines, name: str) -> None:
    """Print the story, a table of the requests and the main figures for each cache, where two caches diverge, and the
    commands that show more of the scenario that the caller knows as `name`."""
    out = stdout()
    scenario = next(iter(timelines.values())).scenario
    for number, (kind, timeline) in enumerate(timelines.items()):
        head = list(_head(kind, timeline, first=not number))
        if scenario:
            *title, _ = head  # its last line is about the cache
            for paragraph in title[:2]:
                out.print(paragraph, "", sep="\n")
            head = [f"{scenario.caches[kind].describe()}.".capitalize()]
        out.print(*head, sep="\n", style="bold" if scenario else None)
        summary = timeline.index
        _print_requests(timeline, summary)
        out.print(_in_short(summary), "", sep="\n")
    if len(timelines) == 2:
        out.print(*report(partings(dict(timelines)), limit=1), "", LOCK_STEP, sep="\n")
    if scenario:
        out.print(CostModel.named(scenario.model, scenario.device).describe())
        request = scenario.requests[-1].id if scenario.requests else "ID"
        why = shell_words("minicache", "sim", "explain", name, "--request", request)
        out.print("", f"Why:    {why}", f"Watch:  {shell_words('minicache', 'tui', name)}", sep="\n", soft_wrap=True)
    out.print("More:   --plain (every event and hit rate in words), --json (all figures)")


def _print_requests(timeline: Timeline, summary: RunIndex) -> None:
    from rich.table import Table

    out = stdout()
    requests = list(summary.requests.values())
    reasons = _reasons(timeline, [request.id for request in requests[:SHOWN]])
    columns = ["request", "tokens", "cached", "computed", "TTFT ms", "why no more"]
    preempted = any(request.preemptions for request in requests)
    if preempted:
        columns.insert(4, "preempted")
    table = Table(box=None, pad_edge=False)
    for name in columns:
        left = name in (columns[0], columns[-1])
        # A long id is cut: broken into lines, it could look like two rows.
        cut = {"no_wrap": True, "max_width": LONGEST_ID} if name == columns[0] else {}
        table.add_column(name, justify="left" if left else "right", **cut)  # type: ignore[arg-type]
    for request in requests[:SHOWN]:
        table.add_row(
            request.id,
            f"{request.tokens:,}",
            "–" if request.cached_tokens is None else f"{request.cached_tokens:,}",
            f"{request.computed_tokens:,}",
            *([str(request.preemptions or "")] if preempted else []),
            "–" if request.ttft is None else f"{1000 * request.ttft:,.0f}",
            reasons.get(request.id, request.outcome),
        )
    out.print(table)
    if len(requests) > SHOWN:
        out.print(f"… and {plural(len(requests) - SHOWN, 'more request')}.")


def _reasons(timeline: Timeline, ids: list[str]) -> dict[str, str]:
    """For each request that was admitted, why no more matched at its first admission."""
    reasons = {}
    for id in ids:
        admissions = timeline.index.requests[id].admissions
        lookup = timeline.index.last_lookup(id, admissions[0]) if admissions else None
        if lookup is not None:
            reasons[id] = reason_in_short(timeline.findings.at(lookup))
    return reasons


def _in_short(summary: RunIndex) -> str:
    totals = summary.totals
    counts = [(totals["evicted_blocks"], "evicted"), (totals["duplicates_freed"], "freed as duplicates")]
    blocks = "".join(f", {count:,} {what}" for count, what in counts if count)
    preemptions = f" {plural(totals['preemptions'], 'preemption')}." if totals["preemptions"] else ""
    rate = f"{summary.hit_rates['tokens of all']:.1%}"
    return (
        f"{summary.cached_tokens:,} of {summary.prompt_tokens:,} prompt tokens were found in the cache (hit rate, "
        f"tokens of all: {rate}); {totals['computed_tokens']:,} tokens were computed in "
        f"{plural(totals['steps'], 'step')} (the last token of each answer is not computed). "
        f"At most {totals['peak_blocks']:,} of {plural(summary.capacity, 'block')} in use{blocks}.{preemptions}"
    )


def print_explained(explained: Mapping[Kind, Explained], as_json: bool) -> None:
    if as_json:
        print_json({kind: item.to_json() for kind, item in explained.items()})
        return
    for number, (kind, item) in enumerate(explained.items()):
        if len(explained) > 1:
            say(*[""] * bool(number), f"With the {kind} cache:")
        say(*item.lines())
