"""The keys of the player, as data: the footer, the help, the palette and a person's own key map all come from here.

A file `keys.toml` in the configuration folder gives actions other keys:

    [keys]
    step = "l,right"
    back = "h,left"
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from textual.binding import Binding

from minicache.core.errors import MinicacheError
from minicache.sim.toml_table import suggestion


class BadKeys(MinicacheError):
    """The key map cannot be read, or names an action that there is not."""


@dataclass(frozen=True, slots=True)
class Key:
    """`action` is its name in a key map; `footer` is the word in the footer, empty where there is no room for it."""

    action: str
    keys: str
    what: str
    footer: str = ""


KEYS = (
    Key("step", "right,n", "To the next thing that happens", "step"),
    Key("back", "left,p", "Back to what happened before", "back"),
    Key("play", "space", "Play, or pause", "play"),
    Key("fork", "f", "Fork: what if something were different?", "what if"),
    Key("compare", "m", "Compare two caches, two policies, or a fork with its original, step by step", "compare"),
    Key("help", "question_mark,f1", "Help for what has the focus", "help"),
    Key("add_breakpoint", "b", "Breakpoints: stop at an event, a request, a block, a hash or a hit rate"),
    Key("faster", "plus,equals_sign", "Play twice as fast"),
    Key("slower", "minus", "Play half as fast"),
    Key("next_step", "pagedown", "To the next scheduler step"),
    Key("previous_step", "pageup", "To the scheduler step before"),
    Key("next_event", "full_stop", "One event forward, also where nothing is to be seen"),
    Key("previous_event", "comma", "One event back"),
    Key("next_request", "shift+right", "To where the next request arrives"),
    Key("previous_request", "shift+left", "Back to where a request arrived"),
    Key("next_alike", "right_square_bracket", "To the next event of the same kind"),
    Key("previous_alike", "left_square_bracket", "Back to the last event of the same kind"),
    Key("start", "home", "To the beginning"),
    Key("end", "end", "To the end"),
    Key("next_hit", "H", "To the next hit"),
    Key("next_miss", "M", "To the next miss"),
    Key("next_evict", "E", "To the next eviction"),
    Key("next_preempt", "P", "To the next preemption"),
    Key("resume", "c", "On to the next breakpoint"),
    Key("reverse", "C", "Back to the last breakpoint"),
    Key("run_to_cursor", "t", "To the event that is selected"),
    Key("go_to", "g", "Go to a step, an event or a request"),
    Key("find", "slash", "Find a block, a hash, a request or a piece of a prompt"),
    Key("inject", "i", "Send a request of your own"),
    Key("picture", "f8", "Save a picture of the screen (SVG)"),
    Key("theme", "d", "Dark or light"),
    Key("leave", "escape", "Close what is open; leave a fork or a comparison; back to the chooser"),
    Key("quit", "q", "Quit"),
)
# Ctrl-C leaves at once from everywhere, mid-animation and in a dialog too, with the exit status of an interrupt.
INTERRUPT = Binding("ctrl+c", "interrupt", "Quit", show=False, priority=True, system=True)


def bindings() -> list[Binding]:
    """Textual's form of the table."""
    return [
        Binding(
            key.keys,
            key.action,
            key.footer or key.what,
            show=bool(key.footer),
            tooltip=key.what if key.footer else "",
            id=key.action,
        )
        for key in KEYS
    ]


def read_keymap(path: Path) -> dict[str, str]:
    """Action -> keys, from a TOML file; empty if there is none. Raises `BadKeys`."""
    if not path.is_file():
        return {}
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadKeys(f"{path} cannot be read as TOML: {error}") from None
    keys = table.get("keys")
    if not isinstance(keys, dict) or len(table) != 1:
        raise BadKeys(f'{path}: write one table [keys] with lines such as step = "l,right"')
    actions = [key.action for key in KEYS]
    for action, value in keys.items():
        if action not in actions:
            hint = suggestion(action, actions) or ": `minicache tui --keys` lists them"
            raise BadKeys(f"{path}: there is no action {action!r}{hint}")
        if not isinstance(value, str) or not value:
            raise BadKeys(f'{path}: {action} must be a text with keys, such as "l,right", not {value!r}')
    return keys
