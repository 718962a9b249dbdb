"""Bar charts as SVG files. Equal figures give equal bytes with the same version of matplotlib."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

COLOURS = ("#0072b2", "#e69f00", "#009e73")  # distinct for people who see few colours (Okabe and Ito)
HATCHES = ("", "//", "..")  # and in print
STYLE = {"svg.hashsalt": "minicache", "svg.fonttype": "none", "font.family": "sans-serif", "hatch.linewidth": 0.5}


@dataclass(frozen=True)
class Panel:
    """One group of bars: a label for each bar, and for each name a series with a value per bar. The axis ends at
    `most`."""

    title: str
    labels: Sequence[str]
    series: dict[str, list[float]]
    most: float | None = None


class Chart(NamedTuple):
    """Panels with the same series, one below the other, and a note with the conditions."""

    title: str
    panels: Sequence[Panel]
    note: str = ""


def draw(chart: Chart) -> str:
    """The chart as SVG. Needs matplotlib."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    file = io.StringIO()
    with matplotlib.rc_context(STYLE):
        canvas = FigureCanvasSVG(_figure(chart))
        canvas.print_svg(file, metadata={"Date": None, "Creator": "minicache", "Title": chart.title})
    return file.getvalue()


def _figure(chart: Chart):  # type: ignore[no-untyped-def]
    from matplotlib.figure import Figure

    panels = chart.panels
    heights = [0.7 + 0.26 * len(panel.labels) * (len(panel.series) + 0.6) for panel in panels]
    figure = Figure(figsize=(8, sum(heights) + 0.9), layout="constrained")
    figure.suptitle(chart.title, fontsize=12, fontweight="bold")
    all_axes = figure.subplots(len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": heights})
    for axes, panel in zip(all_axes[:, 0], panels, strict=True):
        _draw_panel(axes, panel)
    names = list(panels[0].series)
    if len(names) > 1:
        figure.legend(all_axes[0, 0].containers, names, loc="outside lower center", ncols=len(names), frameon=False)
    all_axes[-1, 0].set_xlabel(chart.note, fontsize=8)  # there no legend covers it
    return figure


def figure_of(value: float) -> str:
    """A figure as in the tables: a whole number, or with one decimal below a thousand."""
    return f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:,.1f}"


def _draw_panel(axes, panel: Panel) -> None:  # type: ignore[no-untyped-def]
    height = 1 / (len(panel.series) + 0.6)
    for index, (name, values) in enumerate(panel.series.items()):
        places = [label + index * height for label in range(len(panel.labels))]
        bars = axes.barh(places, values, height, label=name, color=COLOURS[index], hatch=HATCHES[index], edgecolor="w")
        axes.bar_label(bars, [f" {figure_of(value)}" for value in values], fontsize=8)
    axes.set_yticks([label + (len(panel.series) - 1) * height / 2 for label in range(len(panel.labels))], panel.labels)
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.set_title(panel.title, fontsize=10, loc="left")
    axes.set_xlim(0, 1.12 * (panel.most or max(1e-9, *(max(values) for values in panel.series.values()))))
    axes.spines[["top", "right"]].set_visible(False)
