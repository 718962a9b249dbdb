"""The keys of the player, as data: the footer, the help, the palette and a person's own key map all come from here."""

from collections.abc import Container, Mapping
from dataclasses import dataclass

from textual.binding import Binding
from textual.keys import KEY_DISPLAY_ALIASES, format_key


@dataclass(frozen=True, slots=True)
class Key:
    """`action` is its name in a key map; `keys` are Textual's names with commas between; `footer` is the word in the
    footer, empty where there is no room for it; two of the same word stand together there."""

    action: str
    keys: str
    what: str
    footer: str = ""


# A step is the scheduler's; what the arrow keys do is to go forward and back.
GROUPS: Mapping[str, tuple[Key, ...]] = {
    "Through the run": (
        Key("forward", "right,n", "Forward to the next thing that happens", "next"),
        Key("back", "left,p", "Back to what happened before", "back"),
        Key("play", "space", "Play, or pause", "play"),
        Key("faster", "plus,equals_sign", "Play twice as fast"),
        Key("slower", "minus", "Play half as fast"),
        Key("next_step", "pagedown", "To the end of this step of the scheduler, then of the next"),
        Key("previous_step", "pageup", "Back to the end of the step before"),
        Key("next_event", "full_stop", "One event forward, also where nothing is to be seen"),
        Key("previous_event", "comma", "One event back"),
        Key("start", "home", "To the beginning"),
        Key("end", "end", "To the end"),
        Key("go_to", "g", "Go to a step, an event or a request"),
    ),
    "To what happens": (
        Key("next_hit", "H", "To the next hit", "hit/miss"),
        Key("next_miss", "M", "To the next miss", "hit/miss"),
        Key("next_evict", "E", "To the next eviction"),
        Key("next_preempt", "P", "To the next preemption"),
        Key("next_request", "shift+right", "To where the next request arrives"),
        Key("previous_request", "shift+left", "Back to where a request arrived"),
        Key("next_alike", "right_square_bracket", "To the next event of the kind that is selected, else of this kind"),
        Key("previous_alike", "left_square_bracket", "Back to the last event of the same kind"),
        Key("add_breakpoint", "b", "Breakpoints: stop at a kind of event, a request, a block, a hash or a hit rate"),
        Key("resume", "c", "On to the next breakpoint"),
        Key("reverse", "C", "Back to the last breakpoint"),
        Key("run_to_cursor", "t", "To the event under the cursor of the event strip, else to the one that is selected"),
    ),
    "What if": (
        Key("fork", "f", "Fork: what if something were different?", "what if"),
        Key("inject", "i", "Send a request of your own, between two steps"),
        Key("compare", "m", "Compare two caches, two policies, or a fork with its original, in lock-step"),
    ),
    "On the screen": (
        Key("zoom", "z", "A pool larger than its panel: overview, or single blocks"),
        Key("find", "slash", "Find a block, a hash, a request or a piece of a prompt"),
        Key("help", "question_mark,f1", "Help: what has the focus, the signs, all keys", "help"),
        Key("theme", "d", "Dark or light"),
        Key("picture", "f8", "Save a picture of the screen (SVG)"),
        Key("leave", "escape", "Close what is open; leave a fork or a comparison; back to the chooser"),
        Key("quit", "q", "Quit"),
    ),
}
KEYS = tuple(key for group in GROUPS.values() for key in group)
# What a key map cannot change: (as typed, what it does).
FIXED = (
    ("1 2 3 4", "The pool, the requests, the hash chain or radix tree, the eviction order"),
    ("tab", "To the next panel; shift+tab goes to the one before"),
    ("↑ ↓", "Move in the panel with the focus, then ← → too where its cursor goes sideways; else scroll Explain"),
    ("enter", "Explain what is under the cursor"),
    ("ctrl+p", "All commands, to search"),
    ("ctrl+c", "Quit at once, from everywhere"),
)
# Ctrl-C leaves at once from everywhere, mid-animation and in a dialog too, with the exit status of an interrupt.
INTERRUPT = Binding("ctrl+c", "interrupt", "Quit", show=False, priority=True, system=True)
_TYPED = {**KEY_DISPLAY_ALIASES, "enter": "enter"}
KEY_NAMES = {typed: name for name, typed in _TYPED.items()} | {",": "comma"}  # as typed -> as Textual names it


def bindings(hidden: Container[str] = ()) -> list[Binding]:
    """Textual's form of the table; the actions in `hidden` are not in the footer."""
    words = [key.footer for key in KEYS]
    return [
        Binding(
            key.keys,
            key.action,
            key.footer or key.what,
            show=bool(key.footer) and key.action not in hidden,
            tooltip=key.what if key.footer else "",
            id=key.action,
            group=Binding.Group(key.footer) if key.footer and words.count(key.footer) > 1 else None,
        )
        for key in KEYS
    ]


def typed(key: str) -> str:
    """A key as a person types it: `[` for Textual's `left_square_bracket`, `shift+→` for `shift+right`."""
    *held, last = key.split("+")
    return "+".join([*held, _TYPED.get(last) or format_key(last)])


def named(key: str) -> str:
    """Textual's name of a key that a person wrote: `left_square_bracket` for `[`; a name stays as it is."""
    *held, last = key.split("+") if len(key) > 1 else [key]
    (binding,) = Binding.make_bindings([(KEY_NAMES.get(last, last), "", "")])
    return "+".join([*held, binding.key])


def keys_in_use(keymap: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Action -> its keys as they are typed. No key of the map is another action's: `read_keymap` sees to that."""
    return {key.action: tuple(map(typed, keymap.get(key.action, key.keys).split(","))) for key in KEYS}


def key_of(app: object, action: str) -> str:
    """The first key of an action as it is typed in this app."""
    in_use: Mapping[str, tuple[str, ...]] = getattr(app, "keys_in_use", _BY_DEFAULT)
    return in_use[action][0]


_BY_DEFAULT = keys_in_use({})
