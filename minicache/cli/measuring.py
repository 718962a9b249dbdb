"""Commands made from experiments: parse an option for each setting, run the experiment, print and draw the result.

`minicache experiment`, `bench` and `demo` use these.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from enum import StrEnum
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional, get_type_hints

import typer

from minicache.bench.experiment import Experiment, discard, options
from minicache.cli.console import (
    CacheChoice,
    JsonOption,
    print_json,
    progress_bar,
    require_installed,
    stderr,
    stdout,
    writing,
)
from minicache.common.files import require_writable, write_text
from minicache.core.errors import InvalidArgument

if TYPE_CHECKING:
    from minicache.bench.experiment import Option

SvgOption = Annotated[
    Path | None, typer.Option("--svg", metavar="FILE", help="Also draw the figures into this file.", show_default=False)
]


def command_of(experiment: type[Experiment]) -> Callable[..., None]:
    """A function for Typer that makes the experiment from its options, runs it and prints the result."""

    def command(as_json: bool, svg: Path | None = None, **given: Any) -> None:
        conduct(experiment, settings_of(given), as_json, svg)

    parameters = [*setting_parameters(experiment), keyword("as_json", JsonOption, False)]
    if experiment.has_chart:
        parameters.append(keyword("svg", SvgOption, None))
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__doc__ = experiment.__doc__
    return command


def setting_parameters(experiment: type[Experiment]) -> list[Parameter]:
    """A parameter for each option. `caches` becomes `--cache`. Without `--model` the model is chosen when it runs."""
    hints = get_type_hints(experiment)
    defaults = {field.name: field.default for field in fields(experiment)}  # type: ignore[arg-type]
    found = []
    for name, option in options(experiment).items():
        kind, default = hints[name], defaults[name]
        if name == "caches":
            name, kind, default = "cache", CacheChoice, CacheChoice.both
        elif option.one_of:
            kind, default = Optional[StrEnum(name, [(value, value) for value in option.one_of])], None  # noqa: UP045
        elif default is MISSING:
            kind, default = kind | None, None
        found.append(keyword(name, Annotated[kind, _typer_option(name, kind, option, default)], default))
    return found


def _typer_option(name: str, kind: Any, option: "Option", default: object) -> Any:
    flag = f"--{name.replace('_', '-')}"
    return typer.Option(
        flag, help=" ".join([option.help, *_range(option)]), show_default=default is not None and kind is not bool
    )


def _range(option: "Option") -> Iterator[str]:
    if option.min is not None:
        yield f"At least {option.min}." if option.max is None else f"From {option.min} to {option.max}."


def keyword(name: str, kind: Any, default: object) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def settings_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of an experiment from the options of a command. Options that were not given keep their defaults."""
    settings = {name: value for name, value in given.items() if value is not None and name != "cache"}
    if (cache := given.get("cache")) is not None:
        settings["caches"] = ("hash", "radix") if cache is CacheChoice.both else (str(cache),)
    return settings


def conduct(kind: type[Experiment], settings: dict[str, Any], as_json: bool, svg: Path | None = None) -> None:
    """Run an experiment under a progress bar, then print the result and draw it. Exit status 1 if it does not hold.

    Missing packages and wrong settings are refused before anything is printed.
    """
    experiment = ready(kind, settings, svg)
    header = experiment.header()
    if header:
        (stderr() if as_json else stdout()).print(header)
    with progress_bar() as progress:
        result = experiment.run(progress, discard if as_json else _show)
    if as_json:
        print_json(result.to_json())
    else:
        result.table(stdout())
    if svg is not None:
        from minicache.bench.charts import draw

        with writing("--svg", svg):
            write_text(svg, draw(result.chart()))
        stderr().print(f"wrote {svg}", soft_wrap=True)
    if not result.holds:
        raise typer.Exit(1)


def ready(kind: type[Experiment], settings: dict[str, Any], svg: Path | None) -> Experiment:
    """The experiment, after a check that its packages are installed, its model exists and the chart can be written."""
    needs_model = "model" in options(kind)
    if needs_model:
        require_installed("torch")  # first: importing the engine would name a smaller extra
        settings = {"model": default_model(), **settings} if "model" not in settings else settings
    experiment = kind(**settings)
    for package in experiment.packages:
        require_installed(package)
    if svg is not None:
        require_installed("matplotlib")
        if svg.suffix != ".svg":
            raise InvalidArgument(f"--svg {svg}: the name must end in .svg")
        with writing("--svg", svg):
            require_writable(svg)
    if needs_model:
        from minicache.engine.models import store

        with progress_bar() as report:
            store.resolve(settings["model"], report)
    return experiment


def default_model() -> str:
    """smollm2 if it is in the store; otherwise tiny, and a sentence on stderr that says how to get smollm2."""
    from minicache.engine.models import store

    if store.is_stored(store.SMOLLM2):
        return store.SMOLLM2
    stderr().print(
        "smollm2 is not in the store, so this runs the small model tiny; for a real one: minicache model pull smollm2"
    )
    return store.TINY


def _show(line: str) -> None:
    stdout().print(line, soft_wrap=True)
