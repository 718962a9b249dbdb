"""A person's own keys, from a file `keys.toml` in the configuration folder:

    [keys]
    forward = "l,→"
    back = "h,←"

What would not work is refused when the file is read: a name that no key has, a key that no terminal can send, one that
does something else whatever a key map says, and one key for two actions.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from textual.keys import format_key

from minicache.common.suggest import suggestion
from minicache.core.errors import MinicacheError

from .keys import KEY_NAMES, KEYS, named, typed

HOLD = ("alt", "ctrl", "shift")
NAMED = (  # keys that send no character, and two of which that is not what they are pressed for
    *("left", "right", "up", "down", "home", "end", "pageup", "pagedown", "insert", "delete", "backspace"),
    *("space", "tab", "enter", "escape", *(f"f{number}" for number in range(1, 25))),
)
NOT_HELD = ("space", "tab", "enter", "escape", "backspace")  # with another key held terminals send the same, or nothing
WITH_CTRL = ("backslash", "right_square_bracket", "circumflex_accent", "underscore")  # and letters and digits
SAME = {"ctrl+i": "tab", "ctrl+m": "enter", "ctrl+h": "backspace"}
# What these do they do under every key map.
TAKEN = {
    "up": "moves in a panel",
    "down": "moves in a panel",
    "enter": "explains what is under the cursor",
    "escape": "closes what is open",
    "tab": "goes to the next panel",
    "shift+tab": "goes to the panel before",
    **{str(number): "shows a panel" for number in range(1, 5)},
    "ctrl+c": "quits at once",
    "ctrl+q": "quits",
    "ctrl+p": "opens all commands, to search",
}
IN_CHOOSER = {"r": "opens another cache", "n": "opens a run anew", "space": "reads on in a description"}
ALSO_IN_CHOOSER = ("help", "theme", "quit")


class BadKeys(MinicacheError):
    """The key map cannot be read, or says what would not work."""


def read_keymap(path: Path) -> dict[str, str]:
    """Action -> keys by Textual's names, from a TOML file; empty if there is none. Raises `BadKeys`."""
    if not path.is_file():
        return {}
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # ValueError: it is not UTF-8, not TOML, or a number in it has no end
        raise BadKeys(f"{path} cannot be read as TOML: {error}") from None
    keys = table.get("keys")
    if not isinstance(keys, dict) or len(table) != 1:
        raise BadKeys(f'{path}: write one table [keys] with lines such as forward = "l,→"')
    try:
        keymap = {action: _keys_of(action, value) for action, value in keys.items()}
        _require_one_action_each(keymap)
    except BadKeys as error:
        raise BadKeys(f"{path}: {error}") from None
    return keymap


def _keys_of(action: str, value: object) -> str:
    actions = [key.action for key in KEYS]
    if action not in actions:
        hint = suggestion(action, actions) or ": `minicache tui --keys` lists them"
        raise BadKeys(f"there is no action {action!r}{hint}")
    if not isinstance(value, str) or not all(word.strip() for word in value.split(",")):
        raise BadKeys(
            f'{action} must be a text with keys, such as "l,→", not {value!r}: the space bar is written space, '
            "the comma comma"
        )
    names = [_name_of(word.strip()) for word in value.split(",")]
    for name in names:
        taken = TAKEN | (IN_CHOOSER if action in ALSO_IN_CHOOSER else {})
        if name in taken and (action, name) != ("leave", "escape"):
            raise BadKeys(f"{action} cannot be {typed(name)}: that key {taken[name]}")
    return ",".join(names)


def _name_of(word: str) -> str:
    """Textual's name of a key as a person wrote it. Raises `BadKeys` for what is none or what no terminal sends."""
    if len(word) > 2 and word.endswith("++"):  # the + itself, with something held
        *held, last = [*word[:-2].split("+"), "+"]
    else:
        *held, last = word.split("+") if len(word) > 1 else [word]
    held = sorted(set(held))
    if not last:
        raise BadKeys(f"{word!r} ends with +: write the key that is pressed meanwhile, as in shift+right")
    if unknown := set(held) - set(HOLD):
        raise BadKeys(f"there is no key {min(unknown)!r} to hold in {word!r}: there are {', '.join(HOLD)}")
    last = named(last)
    if last not in NAMED and not _is_character(last):
        raise BadKeys(f"there is no key {last!r}{suggestion(last, [*NAMED, *KEY_NAMES]) or ': write what it types'}")
    name = "+".join([*held, last])
    if name in SAME:
        raise BadKeys(f"{word} cannot be told from {SAME[name]}: terminals send the same for both")
    if held and not _can_be_held(held, last):
        raise BadKeys(f"{word} cannot be had: no terminal sends it, or not every one{_instead(held, last)}")
    return name


def _is_character(name: str) -> bool:
    """Whether this is the name of the key that types some character."""
    character = format_key(name)
    return len(character) == 1 and character.isprintable() and named(character) == name


def _can_be_held(held: list[str], last: str) -> bool:
    if last in NAMED:
        return last not in NOT_HELD or (held, last) == (["shift"], "tab")
    plain = len(last) == 1 and last.isascii() and last == last.lower()  # a letter or a digit
    return held != ["shift"] and (plain or (held == ["ctrl"] and last in WITH_CTRL))


def _instead(held: list[str], last: str) -> str:
    """What to write for a capital letter."""
    if len(last) == 1 and last.isalpha():
        return f": write {last.upper()}" if held == ["shift"] else f": write {'+'.join([*held, last.lower()])}"
    return ""


def _require_one_action_each(keymap: Mapping[str, str]) -> None:
    """Raises `BadKeys` for a key of two actions, of which one may have it by default."""
    owner: dict[str, str] = {}
    for key in sorted(KEYS, key=lambda key: key.action in keymap):  # first those that nobody changed
        for name in keymap.get(key.action, key.keys).split(","):
            other = owner.setdefault(name, key.action)
            if other == key.action:
                continue
            both = f"{typed(name)} cannot be for {other} and for {key.action}"
            if other in keymap:
                raise BadKeys(f"{both}: take it from one of them")
            raise BadKeys(f"{both}: {other} has it already, so give {other} another key too, or {key.action}")
