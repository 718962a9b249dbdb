"""The styles of what panels draw, by name: the colours of the theme, `on-` their tints as a background, and weights."""

from ..signs import NEWS
from ..theme import DARK, TINTED

STYLES = {
    **{name: f"color: $mc-{name}" for name in DARK},
    **{f"on-{name}": f"background: $mc-{name}-tint" for name in TINTED},
    "null": "color: $mc-quiet",
    "strong": "text-style: bold",
    "cursor": "text-style: reverse",
    "chosen": "text-style: bold underline",
    "faded": "text-style: dim",
}
COMPONENTS = {f"panel--{name}" for name in STYLES}  # as Textual finds them
CSS = "\n".join(f".panel--{name} {{ {rule}; }}" for name, rule in STYLES.items())


def of_sign(sign: str, cursor: bool = False, chosen: bool = False) -> str:
    """The style of a block's sign: what is news stands out, and so does what is under the cursor or chosen."""
    news = f" strong on-{sign}" if sign in NEWS else ""
    return f"{sign}{news}{' cursor' if cursor else ''}{' chosen' if chosen else ''}"
