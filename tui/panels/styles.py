"""The styles of what panels draw, by name: the colours of the theme, `on-` their tints as a background, and weights.

They are no component classes of Textual, which would apply its style sheet to each of them, for each panel, whenever a
class of the screen changes: that made up half the time of the first frame.
"""

from collections.abc import Mapping

from rich.style import Style
from textual.color import Color

from ..signs import NEWS
from ..theme import DARK, TINTED

COLOURS = {name: f"mc-{name}" for name in DARK} | {"null": "mc-quiet"}  # name -> variable of the theme
TINTS = {f"on-{name}": f"mc-{name}-tint" for name in TINTED}
WEIGHTS = {
    "strong": Style(bold=True),
    "cursor": Style(reverse=True),
    "chosen": Style(bold=True, underline=True),
    "faded": Style(dim=True),
}
STYLES = (*COLOURS, *TINTS, *WEIGHTS)


def style_of(name: str, variables: Mapping[str, str]) -> Style:
    """What one name adds to a style, with the theme's `variables`."""
    if name in WEIGHTS:
        return WEIGHTS[name]
    if name in TINTS:
        return Style(bgcolor=Color.parse(variables[TINTS[name]]).rich_color)
    return Style(color=Color.parse(variables[COLOURS[name]]).rich_color)


def of_sign(sign: str, cursor: bool = False, chosen: bool = False) -> str:
    """The style of a block's sign: what is news stands out, and so does what is under the cursor or chosen."""
    news = f" strong on-{sign}" if sign in NEWS else ""
    return f"{sign}{news}{' cursor' if cursor else ''}{' chosen' if chosen else ''}"
