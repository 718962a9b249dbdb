"""The protocol of every experiment and benchmark: settings, a run, and a result with a table and, mostly, a chart.

An experiment is one file with a class that its last line names: `EXPERIMENT = ThreeForms`. The fields of the class are
the settings, a field with an `Option` is an option of the command, and the docstring is the help of the command. To add
an experiment, write the file and put its name into a list below, which `minicache experiment`, `bench` and `demo` read.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_type_hints

from minicache.common.progress import Progress, silent
from minicache.common.suggest import not_one_of
from minicache.core.errors import InvalidArgument, require_int

if TYPE_CHECKING:
    from rich.console import Console

    from minicache.bench.charts import Chart

EXPERIMENTS = ("three-forms", "timestamp", "cold-warm", "breakers", "exactness")
BENCHMARKS = ("core", "engine", "sim")

Show = Callable[[str], None]  # receives each line of text as soon as its figures are measured


def discard(line: str) -> None:
    """A `Show` that shows nothing."""


@dataclass(frozen=True)
class Option:
    """A setting that is also an option of the command line: an integer from `min` to `max`, or one of a few names."""

    help: str
    min: int | None = None
    max: int | None = None
    one_of: tuple[str, ...] = ()

    def check(self, name: str, value: Any) -> None:
        """Raises `InvalidArgument` for a value out of range. `None` means that no value was given."""
        for each in value if isinstance(value, tuple) else () if value is None else (value,):
            if self.one_of and each not in self.one_of:
                raise InvalidArgument(f"{name} {not_one_of(each, self.one_of)}")
            if self.min is not None and require_int(name, each, self.min) > (self.max or each):
                raise InvalidArgument(f"{name} must be at most {self.max}, not {each}")


ModelName = Annotated[str, Option("smollm2, tiny, or a model folder; smollm2 if it is in the store, else tiny.")]
CACHES = ("hash", "radix")
CacheNames = Annotated[
    tuple[str, ...], Option("vLLM's hash chain, SGLang's radix tree, or one after the other.", one_of=CACHES)
]


class Result(ABC):
    """The result of an experiment."""

    @property
    def holds(self) -> bool:
        """False if the result shows a fault, such as an answer that a cache changed."""
        return True

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The object that `--json` prints."""

    @abstractmethod
    def table(self, console: "Console") -> None:
        """Print the figures, and their meaning in a sentence."""

    def chart(self) -> "Chart":
        """The figures as bars, for an experiment that `has_chart`."""
        raise NotImplementedError


class Experiment(ABC):
    """A dataclass of settings. Making one raises `InvalidArgument` for a setting out of range."""

    packages: ClassVar[tuple[str, ...]] = ("torch",)  # modules that must be installed
    has_chart: ClassVar[bool] = True
    demo: ClassVar[Mapping[str, Any]] = {}  # settings with which `minicache demo` shows it in a short time

    def __post_init__(self) -> None:
        for name, option in options(type(self)).items():
            option.check(name, getattr(self, name))

    def header(self) -> str:
        """A sentence about the coming measurement. Raises for every fault that can be found before a model is
        loaded."""
        return ""

    @abstractmethod
    def run(self, progress: Progress = silent, show: Show = discard) -> Result:
        """Measure. Raises as the engine does."""


def load(name: str) -> type[Experiment]:
    """The experiment or benchmark called `name`."""
    found: type[Experiment] = import_module(f"minicache.bench.{name.replace('-', '_')}").EXPERIMENT
    return found


def options(experiment: type[Experiment]) -> dict[str, Option]:
    """The settings that are options of the command, by name."""
    hints = get_type_hints(experiment, include_extras=True)
    return {
        name: option
        for name, hint in hints.items()
        for option in getattr(hint, "__metadata__", ())
        if isinstance(option, Option)
    }
