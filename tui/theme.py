"""Our two themes. A colour stands for one thing: blue was hit, orange was computed, violet is shared, red was evicted,
green was generated.

The colours of a theme also differ in lightness, every one of them has a contrast of at least 4.5:1 with the background,
and no colour says anything that a glyph does not say too. A tint is the background of text about that thing.
"""

from textual.color import Color
from textual.theme import Theme

DARK = {
    "text": "#dfe5ee",
    "quiet": "#8b97a8",
    "empty": "#7a8698",
    "findable": "#93a4bb",
    "used": "#cdd5e0",
    "hit": "#6ab4ff",
    "computed": "#ffbf5e",
    "shared": "#b795ff",
    "evicted": "#ff6b6b",
    "generated": "#a2ec98",
    "preempted": "#ff9ecb",
    "line": "#3a4658",
    "focus": "#e6c14f",
}
LIGHT = {
    "text": "#1d2430",
    "quiet": "#5c6675",
    "empty": "#667181",
    "findable": "#4d5a70",
    "used": "#333d4b",
    "hit": "#0a529b",
    "computed": "#a05000",
    "shared": "#5c2fb5",
    "evicted": "#b3132a",
    "generated": "#0f5221",
    "preempted": "#a3195b",
    "line": "#b9b4a6",
    "focus": "#8a5a00",
}
TINTED = ("hit", "computed", "shared", "evicted", "generated", "preempted", "used")
BACKGROUND = {True: "#11151c", False: "#fbfaf7"}
SURFACE = {True: "#18202c", False: "#f1efe8"}


def variables(dark: bool = True) -> dict[str, str]:
    """The colours by name, as variables of Textual's CSS: what the app falls back on under a theme that is not ours."""
    colours = DARK if dark else LIGHT
    ground = Color.parse(BACKGROUND[dark])
    share = 0.24 if dark else 0.11
    tints = {f"mc-{name}-tint": ground.blend(Color.parse(colours[name]), share).hex for name in TINTED}
    return {f"mc-{name}": colour for name, colour in colours.items()} | tints


def _theme(name: str, dark: bool) -> Theme:
    colours = DARK if dark else LIGHT
    return Theme(
        name,
        primary=colours["hit"],
        secondary=colours["shared"],
        warning=colours["computed"],
        error=colours["evicted"],
        success=colours["generated"],
        accent=colours["focus"],
        foreground=colours["text"],
        background=BACKGROUND[dark],
        surface=SURFACE[dark],
        panel=SURFACE[dark],
        dark=dark,
        variables={
            **variables(dark),
            "footer-background": BACKGROUND[dark],
            "footer-description-background": BACKGROUND[dark],
            "footer-description-foreground": colours["quiet"],
            "footer-key-foreground": colours["focus"],
            "block-cursor-foreground": BACKGROUND[dark],
            "block-cursor-background": colours["focus"],
            "border": colours["focus"],
            "border-blurred": colours["line"],
        },
    )


MINICACHE_DARK = _theme("minicache-dark", dark=True)
MINICACHE_LIGHT = _theme("minicache-light", dark=False)
