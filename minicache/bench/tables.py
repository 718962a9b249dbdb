"""The printing of experiments: bars, tables of rows, and the verdict about the answers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from minicache.bench.conditions import Conditions
from minicache.bench.experiment import Result
from minicache.bench.measure import Arm, Row

NAMES = {"hash": "hash chain (vLLM's)", "radix": "radix tree (SGLang's)", "none": "no cache"}
BAR_WIDTH = 40


def bar(share: float, width: int = BAR_WIDTH) -> str:
    full = round(share * width)
    return "█" * full + "░" * (width - full)


def plain_table(names: Iterable[str], numbers: Iterable[str]) -> Table:
    """A table without lines: columns of text, then columns of figures. Headings of several lines are aligned at the
    bottom."""
    table = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=True, padding=(0, 2))
    for heading in names:
        table.add_column(Text(heading), no_wrap=True, vertical="bottom")
    for heading in numbers:
        table.add_column(Text(heading), justify="right", no_wrap=True, vertical="bottom")
    return table


def ttft_cells(row: Row) -> list[str]:
    """The median, least and greatest TTFT in ms, with one decimal below a second."""
    times = (row.median_ttft_ms, min(row.ttft_ms), max(row.ttft_ms))
    return [f"{time:,.1f}" if time < 1000 else f"{time:,.0f}" for time in times]


def rows_table(rows: Sequence[Row]) -> Table:
    table = plain_table(["\nform"], ["prompt\ntokens", "median\ncached tokens", "TTFT, ms\nmedian", "\nmin", "\nmax"])
    for row in rows:
        table.add_row(row.form, f"{row.prompt_tokens:,}", f"{row.median_cached_tokens:,}", *ttft_cells(row))
    return table


@dataclass(frozen=True)
class Compared(Result):
    """Arms with a cache, and the control arm, which got the same prompts without one. `differences` has a line for each
    answer that differs from the control arm's."""

    conditions: Conditions
    runs: list[Arm]
    control: Arm
    differences: list[str]

    @property
    def holds(self) -> bool:
        return not self.differences

    def verdict(self, console: Console) -> None:
        """Print whether the answers are equal, each difference, and the conditions."""
        console.print(f"outputs identical: {'yes' if self.holds else 'no'}", style="bold")
        for line in self.differences:
            console.print(f"  {line}", soft_wrap=True)
        console.print(str(self.conditions))
