"""`minicache sim`: simulate a scenario without a model: what a prefix cache does, step by step, and why."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minicache.cli.commands import Commands
from minicache.cli.console import CacheChoice, JsonOption, remark
from minicache.core.errors import InvalidArgument, MinicacheError

if TYPE_CHECKING:
    from minicache.sim.scenario import Kind
    from minicache.sim.timeline import Timeline

app = typer.Typer(cls=Commands, add_completion=False, no_args_is_help=True, rich_markup_mode=None)


ScenarioArgument = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A name from `minicache sim list`, a .toml file, or a .jsonl log.")
]
CacheOption = Annotated[
    CacheChoice | None,
    typer.Option(help="The hash chain, the radix tree, or both; by default as the scenario says.", show_default=False),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a setting: cache.num_blocks=64.", show_default=False),
]


@app.callback()
def sim() -> None:
    """Simulate a scenario without a model: what a prefix cache does, step by step, and why."""


@app.command("list")
def list_command(as_json: JsonOption = False) -> None:
    """List the scenarios that come with minicache, grouped by subject."""
    from minicache.cli import sim_report

    sim_report.print_list(as_json)


@app.command("run")
def run_command(
    scenario: ScenarioArgument,
    cache: CacheOption = None,
    settings: SetOption = None,
    plain: Annotated[bool, typer.Option("--plain", help="One sentence per event, as on the screen.")] = False,
    as_json: JsonOption = False,
    events: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the event log into this file.", show_default=False)
    ] = None,
    redact: Annotated[bool, typer.Option("--redact", help="Show and write hashes instead of tokens.")] = False,
) -> None:
    """Run a scenario and report what each request reused. Times are modelled.

    --json prints one object, {scenario, cache, events, requests, summary, …}; for two caches {scenario, runs,
    partings}, where each of the runs is such an object. Exit status 1 if the figures are not those that the scenario
    expects.
    """
    from minicache.cli import sim_report
    from minicache.sim.redact import redacted, redacted_sentence

    if plain and as_json:
        raise InvalidArgument("--plain and --json: give one of them")
    try:
        timelines = load(scenario, cache, settings)
    except MinicacheError as error:
        if not redact:
            raise
        raise InvalidArgument(redacted_sentence(str(error))) from None
    unchanged = not settings
    shown = {kind: redacted(timeline) for kind, timeline in timelines.items()} if redact else timelines
    if events is not None:
        sim_report.write_logs(shown, events, scenario)
    wrong = sim_report.mismatches_of(timelines) if unchanged else []
    if as_json:
        sim_report.print_json_of(shown, wrong)
    elif plain:
        sim_report.print_plain(shown)
    else:
        sim_report.print_summary(shown, scenario)
    for sentence in wrong:
        remark(sentence)
    if wrong:
        raise typer.Exit(1)


@app.command("explain")
def explain_command(
    scenario: ScenarioArgument,
    request: Annotated[str | None, typer.Option(help="Explain the request with this id.", show_default=False)] = None,
    block: Annotated[int | None, typer.Option(help="Explain the block with this id.", show_default=False)] = None,
    event: Annotated[int | None, typer.Option(help="Explain the event with this number.", show_default=False)] = None,
    at: Annotated[
        int | None, typer.Option(metavar="EVENT", help="Explain the state after this event.", show_default=False)
    ] = None,
    cache: CacheOption = None,
    settings: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Explain a request, block or event: the rule, what would have changed it, and the function that decided it."""
    from minicache.cli import sim_report
    from minicache.sim import explainer

    if sum(subject is not None for subject in (request, block, event)) != 1:
        raise InvalidArgument("say what to explain: one of --request, --block and --event")
    explained = {}
    for kind, timeline in load(scenario, cache, settings).items():
        if at is not None:
            timeline.require(at)
        if request is not None:
            explained[kind] = explainer.explain_request(timeline, request, at)
        elif block is not None:
            explained[kind] = explainer.explain_block(timeline, block, at)
        elif event is not None:
            explained[kind] = explainer.explain_event(timeline, event)
    sim_report.print_explained(explained, as_json)


def load(name: str, cache: CacheChoice | None, settings: list[str] | None) -> "dict[Kind, Timeline]":
    """The runs of a scenario or a recorded log, by kind of cache."""
    from minicache.sim.library import find_scenario
    from minicache.sim.lock_step import run_both
    from minicache.sim.recorded import read_recorded
    from minicache.sim.timeline import Timeline

    if name.endswith(".jsonl"):
        if cache is not None or settings:
            raise InvalidArgument(f"{name} is a recorded run: --cache and --set apply to scenarios only")
        timeline = read_recorded(Path(name))
        return {timeline.kind: timeline}
    scenario = find_scenario(name, settings or ())
    if cache is CacheChoice.both or (cache is None and len(scenario.kinds) == 2):
        return run_both(scenario)
    kind: Kind = scenario.kinds[0] if cache is None else "hash" if cache is CacheChoice.hash else "radix"
    return {kind: Timeline.record(scenario, kind)}
