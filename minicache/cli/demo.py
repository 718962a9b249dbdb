"""`minicache demo`: the experiments with one cache. The first of them takes about seven cold prompts."""

from collections.abc import Mapping
from dataclasses import fields
from enum import StrEnum
from typing import Annotated

import typer

from minicache.bench.experiment import EXPERIMENTS, Experiment, load, options
from minicache.cli.console import CacheChoice, JsonOption, stdout
from minicache.cli.measuring import conduct, settings_of
from minicache.common.printable import shell_words
from minicache.core.errors import InvalidArgument

SHOWN = [name for name in EXPERIMENTS if "caches" in options(load(name))]
Name = StrEnum("Name", [(name, name) for name in SHOWN])  # type: ignore[misc]
DEFAULT = Name("three-forms")
HELP = {name: option.help for shown in reversed(SHOWN) for name, option in options(load(shown)).items()}

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def demo(
    name: Annotated[Name, typer.Argument(metavar="NAME", help="The experiment.")] = DEFAULT,
    model: Annotated[str | None, typer.Option(help=HELP["model"], show_default=False)] = None,
    cache: Annotated[CacheChoice, typer.Option(help=HELP["caches"])] = CacheChoice.hash,
    quick: Annotated[bool, typer.Option("--quick", help=f"{HELP['quick']} Only three-forms.")] = False,
    seed: Annotated[int | None, typer.Option(help=f"{HELP['seed']}  [default: 0]", show_default=False)] = None,
    as_json: JsonOption = False,
) -> None:
    """A model answers with and without a prefix cache: reused tokens, saved time, and equal answers.

    This is `minicache experiment NAME`, by default with one cache. Exit status 1 if an answer differs.
    """
    experiment = load(str(name))
    given = {"model": model, "cache": cache, "quick": quick or None, "seed": seed}
    for option, value in given.items():
        if value is not None and option != "cache" and option not in options(experiment):
            raise InvalidArgument(f"--{option}: the experiment {name} has no such setting")
    conduct(experiment, {**experiment.demo, **settings_of(given)}, as_json)
    if not as_json:
        _print_more(str(name), experiment, cache, quick, {"model": model, "seed": seed})


def _print_more(
    name: str, experiment: type[Experiment], cache: CacheChoice, quick: bool, given: Mapping[str, object]
) -> None:
    """Print what was left out, the command that runs all of it with the `given` options, and the other experiments."""
    defaults = {field.name: field.default for field in fields(experiment)}  # type: ignore[arg-type]
    short = [f"{value} of {defaults[setting]} {setting}" for setting, value in experiment.demo.items()]
    short += [f"the {cache} cache only"] if cache is not CacheChoice.both else []
    short += ["a tenth of the prompt length"] if quick else []
    whole = {**{setting: defaults[setting] for setting in experiment.demo}, **given}
    out = stdout()
    if short:
        settings = [f"--{option} {shell_words(str(value))}" for option, value in whole.items() if value is not None]
        command = " ".join(["minicache experiment", name, "--cache both", *settings])
        out.print()
        out.print(f"This was {', '.join(short)}. All of it: `{command}`.")
    others = ", ".join(f"`minicache demo {other}`" for other in SHOWN if other != name)
    out.print()
    out.print(f"More: {others}; `minicache experiment --help` has their options.")
