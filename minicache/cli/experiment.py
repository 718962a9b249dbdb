"""`minicache experiment`: experiments that show what a prefix cache does."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, Protocol, TypeVar

import typer

from minicache.cli.console import JsonOption, print_json, progress_bar, require_installed, stderr, stdout

if TYPE_CHECKING:
    from rich.console import Console

    from minicache.bench.charts import Panel
    from minicache.bench.conditions import Conditions
    from minicache.bench.measure import Progress

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


class CacheChoice(StrEnum):
    hash = "hash"
    radix = "radix"
    both = "both"

    @property
    def caches(self) -> tuple[str, ...]:
        return ("hash", "radix") if self is CacheChoice.both else (self.value,)


ModelOption = Annotated[
    str | None,
    typer.Option(
        help="smollm2, tiny, or a model folder; smollm2 if it is in the store, else tiny.", show_default=False
    ),
]
CacheOption = Annotated[
    CacheChoice, typer.Option(help="vLLM's hash chain, SGLang's radix tree, or one after the other.")
]
QuickOption = Annotated[bool, typer.Option("--quick", help="A tenth of the prompt length.")]
SeedOption = Annotated[int, typer.Option(help="Makes the request ids: the same seed gives the same prompts.")]
SvgOption = Annotated[
    Path | None, typer.Option("--svg", metavar="FILE", help="Draw the figures into this file, too.", show_default=False)
]


class Result(Protocol):
    """What an experiment found."""

    @property
    def conditions(self) -> "Conditions": ...

    def to_json(self) -> dict[str, Any]: ...


R = TypeVar("R", bound=Result)


@dataclass(frozen=True)
class Chart(Generic[R]):
    """How to draw a result, and the file to draw it into, if any."""

    svg: Path | None
    title: str
    panels: Callable[[R], "Sequence[Panel]"]


@app.callback()
def experiment() -> None:
    """Experiments that show what a prefix cache does."""


@app.command("three-forms")
def three_forms_command(
    model: ModelOption = None,
    cache: CacheOption = CacheChoice.both,
    quick: QuickOption = False,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
    svg: SvgOption = None,
) -> None:
    """One system prompt with a request id nowhere, at its start, at its end: what is reused, how long it takes.

    Exit status 1 if an answer differs from the one without a cache.
    """
    run_three_forms(model, cache, quick, seed, as_json, svg)


def run_three_forms(
    model: str | None, cache: CacheChoice, quick: bool, seed: int, as_json: bool, svg: Path | None
) -> None:
    """Run and print the experiment; `minicache demo` is this with other defaults."""
    from minicache.bench import three_forms
    from minicache.bench.three_forms_report import panels, print_header, print_report

    settings = three_forms.Settings(
        model=_ready(model, svg),
        caches=cache.caches,
        prompt_tokens=three_forms.QUICK_PROMPT_TOKENS if quick else three_forms.PROMPT_TOKENS,
        seed=seed,
    )
    rounds = three_forms.prepare(settings)
    if not as_json:
        print_header(settings.model, settings.prompt_tokens, stdout())
    elif quick:
        stderr().print(f"--quick: a prompt of {settings.prompt_tokens:,} tokens, a tenth of the full length")
    _conduct(
        lambda report: three_forms.run(settings, rounds, report),
        print_report,
        as_json,
        chart=Chart(svg, f"A request id in a system prompt, {settings.model}", panels),
        holds=lambda result: result.outputs_identical,
    )


@app.command("timestamp")
def timestamp_command(
    model: ModelOption = None,
    cache: CacheOption = CacheChoice.both,
    seed: Annotated[int, typer.Option(help="Orders the stream's requests.")] = 0,
    as_json: JsonOption = False,
    svg: SvgOption = None,
) -> None:
    """The time of day at the top of a system prompt, at its end, in the user's turn: hit rates and times.

    Exit status 1 if two requests at different seconds share another number of blocks than 0, 149 and 150.
    """
    run_timestamp(model, cache, seed, as_json, svg)


def run_timestamp(model: str | None, cache: CacheChoice, seed: int, as_json: bool, svg: Path | None) -> None:
    from minicache.bench import timestamp
    from minicache.bench.timestamp_report import panels, print_header, print_report
    from minicache.bench.timestamp_stream import Stream

    settings = timestamp.Settings(_ready(model, svg), cache.caches, stream=Stream(seed=seed))
    prompts = timestamp.prepare(settings)
    if not as_json:
        print_header(settings.model, stdout())
    _conduct(
        lambda report: timestamp.run(settings, prompts, report),
        print_report,
        as_json,
        chart=Chart(svg, f"The time of day in a system prompt, {settings.model}", panels),
        holds=lambda result: result.as_expected,
    )


@app.command("cold-warm")
def cold_warm_command(
    model: ModelOption = None,
    cache: CacheOption = CacheChoice.both,
    system_tokens: Annotated[
        int | None, typer.Option(help="Length of the system prompt; 8,500, or what fits.", show_default=False)
    ] = None,
    rounds: Annotated[int, typer.Option(help="Each round is a cold request and a warm one.")] = 5,
    as_json: JsonOption = False,
    svg: SvgOption = None,
) -> None:
    """One long system prompt, a new question each time: time to first token and speeds, cold, warm, without a cache.

    Exit status 1 if an answer differs from the one without a cache.
    """
    run_cold_warm(model, cache, system_tokens, rounds, as_json, svg)


def run_cold_warm(
    model: str | None, cache: CacheChoice, system_tokens: int | None, rounds: int, as_json: bool, svg: Path | None
) -> None:
    from minicache.bench import cold_warm
    from minicache.bench.cold_warm_report import panels, print_header, print_report

    settings = cold_warm.Settings(_ready(model, svg), cache.caches, system_tokens, rounds)
    plan = cold_warm.plan(settings)
    if not as_json:
        print_header(settings.model, plan, stdout())
    _conduct(
        lambda report: cold_warm.run(settings, plan, report),
        print_report,
        as_json,
        chart=Chart(svg, f"A long system prompt, cold and warm, {settings.model}", panels),
        holds=lambda result: result.outputs_identical,
    )


@app.command("breakers")
def breakers_command(
    model: ModelOption = None,
    cache: CacheOption = CacheChoice.both,
    requests: Annotated[int, typer.Option(help="Of each form; the first fills the cache.")] = 6,
    seed: Annotated[int, typer.Option(help="Makes what varies: ids, orders, samples.")] = 0,
    as_json: JsonOption = False,
    svg: SvgOption = None,
) -> None:
    """Six habits that break a prefix in silence, each against its repaired form: what is reused before and after."""
    run_breakers(model, cache, requests, seed, as_json, svg)


def run_breakers(
    model: str | None, cache: CacheChoice, requests: int, seed: int, as_json: bool, svg: Path | None
) -> None:
    from minicache.bench import breakers
    from minicache.bench.breakers_report import panels, print_header, print_report

    settings = breakers.Settings(_ready(model, svg), cache.caches, requests, seed)
    streams = breakers.prepare(settings)
    if not as_json:
        print_header(settings.model, settings.requests, stdout())
    _conduct(
        lambda report: breakers.run(settings, streams, report),
        print_report,
        as_json,
        chart=Chart(svg, f"Six breakers of a prefix, {settings.model}", panels),
    )


def _ready(model: str | None, svg: Path | None) -> str:
    """The model to run. What is missing or cannot be is refused before anything is printed."""
    from minicache.bench.charts import require_writable
    from minicache.engine.models import store as model_store

    require_installed("torch")  # first: importing the engine would name a smaller extra
    if svg is not None:
        require_installed("matplotlib")
        require_writable(svg)
    name = model or default_model()
    model_store.resolve(name)
    return name


def _conduct(
    run: Callable[["Progress"], R],
    print_report: Callable[[R, "Console"], None],
    as_json: bool,
    chart: "Chart[R] | None" = None,
    holds: Callable[[R], bool] = lambda result: True,
) -> None:
    """Run an experiment under a progress bar, print what it found, draw it; exit status 1 if it does not hold."""
    with progress_bar() as report:
        result = run(report)
    if as_json:
        print_json(result.to_json())
    else:
        print_report(result, stdout())
    if chart is not None and chart.svg is not None:
        from minicache.bench.charts import write_svg

        write_svg(chart.svg, chart.title, chart.panels(result), str(result.conditions))
        stderr().print(f"wrote {chart.svg}", soft_wrap=True)
    if not holds(result):
        raise typer.Exit(1)


def default_model() -> str:
    """smollm2 if it is in the store; else tiny, and a sentence on stderr about how to get the other."""
    from minicache.engine.models import store as model_store

    if model_store.is_stored(model_store.SMOLLM2):
        return model_store.SMOLLM2
    stderr().print(
        "smollm2 is not in the store, so this runs the small model tiny; for a real one: minicache model pull smollm2"
    )
    return model_store.TINY


@app.command("exactness")
def exactness_command(
    model: ModelOption = None,
    prompts: Annotated[int, typer.Option(min=1, max=99, help="Prompts to compare.")] = 8,
    as_json: JsonOption = False,
) -> None:
    """Whether a cache hit changes the bits of an answer: fast mode and exact mode, in three number formats.

    Exit status 1 if a bit differs in exact mode.
    """
    from minicache.bench import exactness
    from minicache.bench.exactness_report import print_report

    settings = exactness.Settings(_ready(model, None), prompts)
    _conduct(lambda report: exactness.run(settings, report), print_report, as_json, holds=lambda result: result.holds)
