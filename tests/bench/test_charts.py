"""Charts are well-formed, and the same bytes each time."""

from xml.etree import ElementTree

import pytest

from minicache.bench.charts import Chart, Panel, draw, figure_of

pytest.importorskip("matplotlib", reason="charts need matplotlib: pip install 'minicache-llm[plots]'")
PANELS = [
    Panel("hit rate, %", ["at the <top>", "at the end"], {"hash": [3.9, 88.6], "radix": [4.4, 89.1]}, 100.0),
    Panel("TTFT, ms", ["cold", "warm", "none"], {"hash": [1289.4, 21.0, 0.0], "radix": [367.0, 15.5, 1.0]}),
]


def test_it_is_xml_and_says_what_the_panels_say():
    root = ElementTree.fromstring(draw(Chart("Cold & warm", PANELS, "2 threads, load 1.6")))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    text = " ".join(root.itertext())
    for words in ("Cold & warm", "at the <top>", "TTFT, ms", "88.6", "1,289", "radix", "2 threads, load 1.6"):
        assert words in text


def test_figures_are_those_of_the_tables():
    values = {
        3.881: "3.9",
        0.9029: "0.9",
        149: "149",
        21.0: "21",
        0.0: "0",
        999.96: "1,000.0",
        1289.4: "1,289",
        1e6: "1,000,000",
    }
    assert {value: figure_of(value) for value in values} == values


def test_the_same_figures_are_the_same_bytes():
    assert draw(Chart("title", PANELS)) == draw(Chart("title", PANELS))
    assert "<dc:date>" not in draw(Chart("title", PANELS))
