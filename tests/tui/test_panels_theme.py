"""The colours: readable, apart from one another, and never alone."""

import itertools

import pytest
from textual.color import Color
from textual.theme import Theme

from minicache_tui.theme import DARK, LIGHT, MINICACHE_DARK, MINICACHE_LIGHT, TINTED, variables

NEEDED = 4.5  # WCAG 2.2, success criterion 1.4.3
NOT_TEXT = ("line",)


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it."""
    parts = [value / 255 for value in Color.parse(colour).rgb]
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [MINICACHE_DARK, MINICACHE_LIGHT], ids=lambda theme: theme.name)
def test_every_colour_is_readable_on_the_background_and_on_its_tint(theme: Theme) -> None:
    colours = DARK if theme.dark else LIGHT
    assert theme.background is not None
    for name, colour in colours.items():
        if name not in NOT_TEXT:
            assert contrast(colour, theme.background) >= NEEDED, name
    for name in TINTED:
        tint = theme.variables[f"mc-{name}-tint"]
        assert contrast(colours["text"], tint) >= NEEDED, name
        assert contrast(colours[name], tint) >= NEEDED, name


@pytest.mark.parametrize("colours", [DARK, LIGHT], ids=["dark", "light"])
def test_hit_and_computed_and_evicted_differ_in_lightness(colours: dict[str, str]) -> None:
    shades = [luminance(colours[name]) for name in ("evicted", "hit", "computed", "generated")]
    assert all(abs(a - b) > 0.015 for a, b in itertools.combinations(shades, 2))


def test_both_themes_and_the_fallback_name_the_same_colours() -> None:
    assert variables(True).keys() == variables(False).keys() <= MINICACHE_DARK.variables.keys()
