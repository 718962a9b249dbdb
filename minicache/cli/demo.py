"""`minicache demo`: the experiments with one cache. The first of them fits into a few minutes on two cores."""

from enum import StrEnum
from typing import Annotated

import typer

from minicache.cli import experiment
from minicache.cli.console import JsonOption, stdout
from minicache.cli.experiment import CacheChoice, CacheOption, ModelOption, QuickOption, SeedOption
from minicache.core.errors import InvalidArgument

app = typer.Typer(rich_markup_mode=None)


class Experiment(StrEnum):
    three_forms = "three-forms"
    timestamp = "timestamp"
    cold_warm = "cold-warm"
    breakers = "breakers"


@app.command()
def demo(
    name: Annotated[Experiment, typer.Argument(metavar="[NAME]", help="Which experiment.")] = Experiment.three_forms,
    model: ModelOption = None,
    cache: CacheOption = CacheChoice.hash,
    quick: QuickOption = False,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """A model answers with a prefix cache and without: how much is reused, what it saves, that the answers are equal.

    NAME is three-forms, timestamp, cold-warm or breakers. This is `minicache experiment NAME`, by default with one
    cache. Exit status 1 if an answer differs.
    """
    if quick and name is not Experiment.three_forms:
        raise InvalidArgument(f"--quick is for three-forms: {name.value} has no short form")
    if name is Experiment.three_forms:
        experiment.run_three_forms(model, cache, quick, seed, as_json, svg=None)
    elif name is Experiment.timestamp:
        experiment.run_timestamp(model, cache, seed, as_json, svg=None)
    elif name is Experiment.cold_warm:
        experiment.run_cold_warm(model, cache, system_tokens=None, rounds=5, as_json=as_json, svg=None)
    else:
        experiment.run_breakers(model, cache, requests=6, seed=seed, as_json=as_json, svg=None)
    if not as_json:
        others = ", ".join(f"`minicache demo {other.value}`" for other in Experiment if other is not name)
        stdout().print(f"\nMore: {others}; `minicache experiment --help` has their options.")
