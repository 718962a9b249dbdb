"""A person's own keys: what is accepted works and is what is shown, what would not work is refused in a sentence."""

import pytest

from minicache.core.errors import MinicacheError
from minicache_tui.keymap import ALSO_IN_CHOOSER, IN_CHOOSER, TAKEN, BadKeys, read_keymap
from minicache_tui.keys import FIXED, KEYS, keys_in_use, named, typed

from .shell_app import Shell, drive

# Action -> keys, as a file says them: a swap, a chain of three, keys with others held, signs, keys of other alphabets.
MAPS = (
    {"forward": "l,→", "back": "h,←"},
    {"add_breakpoint": "z", "zoom": "b"},
    {"forward": "b", "add_breakpoint": "g", "go_to": "n, right"},
    {"play": "space,ctrl+b", "faster": "+,ctrl+pgup", "slower": "-,f12", "theme": "ctrl+shift+t"},
    {"next_hit": "ä", "next_miss": "Ж", "find": "$", "fork": "alt+f", "leave": "escape,backspace", "end": "del"},
    {"help": "comma,f2", "previous_event": "?", "quit": "Q", "start": "shift+home", "picture": "left_square_bracket"}
    | {"previous_alike": "ctrl+left"},
)


def written(keys: dict[str, str]) -> str:
    return "[keys]\n" + "".join(f'{action} = "{value}"\n' for action, value in keys.items())


def read(text: str, tmp_path) -> dict[str, str]:
    path = tmp_path / "keys.toml"
    path.write_text(text, encoding="utf-8")
    return read_keymap(path)


def refused(text: str, tmp_path) -> str:
    """The sentence by which a key map is refused."""
    with pytest.raises(BadKeys) as caught:
        read(text, tmp_path)
    assert isinstance(caught.value, MinicacheError)
    path, _, sentence = str(caught.value).partition("keys.toml")
    assert path == f"{tmp_path}/"
    assert "\n" not in sentence
    return sentence


@pytest.mark.parametrize("keys", MAPS, ids=[next(iter(keys)) for keys in MAPS])
def test_what_is_shown_is_what_works_under_a_map(keys, tmp_path) -> None:
    keymap = read(written(keys), tmp_path)
    shown = keys_in_use(keymap)
    for action, value in keys.items():
        assert [named(key) for key in shown[action]] == [named(key.strip()) for key in value.split(",")]

    async def play(shell: Shell) -> None:
        done: list[str] = []
        for key in KEYS:  # what it does is tried elsewhere
            setattr(shell.stage, f"action_{key.action}", lambda action=key.action: done.append(action))
        for key in KEYS:
            for name in keymap.get(key.action, key.keys).split(","):
                done.clear()
                await shell.press(name)
                assert done == [key.action], name
        for key in KEYS:
            for name in {*key.keys.split(",")} - {n for names in shown.values() for n in map(named, names)}:
                done.clear()
                await shell.press(name)
                assert done == [], f"{name} is nobody's now"

    drive(play, keymap=keymap)


def test_a_key_map_is_read(tmp_path) -> None:
    assert read_keymap(tmp_path / "keys.toml") == {}
    text = '[keys]\nforward = "l, →"\nprevious_alike = "["\nplay = "space,ctrl+b"\n'
    expected = {"forward": "l,right", "previous_alike": "left_square_bracket", "play": "space,ctrl+b"}
    assert read(text, tmp_path) == expected


def test_other_keys() -> None:
    async def play(shell: Shell) -> None:
        await shell.press("l")
        assert shell.player.place == shell.player.beats.stops[0]
        await shell.press("right")
        assert shell.player.place == shell.player.beats.stops[0], "the old key does nothing any more"
        await shell.press("x")
        assert shell.player.place == -1

    drive(play, keymap={"forward": "l", "back": "h,x"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[keys\n", "cannot be read as TOML"),
        ("[keys]\nback = " + "9" * 5000, "cannot be read as TOML"),
        ("[keys]\nforwrd = 'l'\n", "there is no action 'forwrd': did you mean 'forward'?"),
        ("[keys]\nzzzzzz = 'l'\n", "`minicache tui --keys` lists them"),
        ("[keys]\nback = 3\n", "back must be a text with keys"),
        ("[keys]\nback = 'h,'\n", "back must be a text with keys"),
        ("[keys]\nback = ''\n", "back must be a text with keys"),
        ("back = 'l'\n", "write one table [keys]"),
        ("[keys]\nback = 'l'\n[more]\n", "write one table [keys]"),
    ],
)
def test_a_wrong_key_map_is_named_in_a_sentence(text, words, tmp_path) -> None:
    assert words in refused(text, tmp_path)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (" ", "the space bar is written space"),
        ("ctrl+", "'ctrl+' ends with +"),
        ("shift+", "'shift+' ends with +"),
        ("ctrl++", "ctrl++ cannot be had"),
        ("+x", "there is no key '' to hold"),
        ("hyper+x", "there is no key 'hyper' to hold in 'hyper+x': there are alt, ctrl, shift"),
        ("foo", "there is no key 'foo'"),
        ("rigth", "there is no key 'rigth': did you mean 'right'?"),
        ("Home", "did you mean 'home'?"),
        ("page down", "did you mean 'pagedown'?"),
        ("f25", "there is no key 'f25': did you mean 'f"),
        ("greek_small_letter_alpha", "there is no key 'greek_small_letter_alpha': write what it types"),
        ("shift+h", "shift+h cannot be had: no terminal sends it, or not every one: write H"),
        ("ctrl+X", "write ctrl+x"),
        ("shift+5", "cannot be had"),
        ("ctrl+enter", "cannot be had"),
        ("ctrl+é", "cannot be had"),
        ("ctrl+i", "ctrl+i cannot be told from tab"),
        ("ctrl+m", "ctrl+m cannot be told from enter"),
        ("\\u0007", "there is no key '\\x07'"),
    ],
)
def test_a_key_that_there_is_not_or_that_no_terminal_sends_is_refused(key, words, tmp_path) -> None:
    sentence = refused(f'[keys]\nforward = "{key}"\n', tmp_path)
    assert words in sentence
    assert refused(f'[keys]\nforward = "l,{key}"\n', tmp_path)


def test_a_key_that_does_something_else_under_every_map_is_refused(tmp_path) -> None:
    fixed = {named(key) for keys, _ in FIXED for key in keys.split()} | {"shift+tab", "escape", "ctrl+q"}
    assert set(TAKEN) == fixed
    for name in fixed:
        for action in ("forward", "quit"):
            words = f"{action} cannot be {typed(name)}: that key {TAKEN[name]}"
            assert words in refused(f'[keys]\n{action} = "{name}"\n', tmp_path)
    for name, what in IN_CHOOSER.items():
        for action in ALSO_IN_CHOOSER:
            assert what in refused(f'[keys]\nplay = "x"\n{action} = "{name}"\n', tmp_path)


def test_no_key_is_for_two_actions(tmp_path) -> None:
    """Whichever of the two had it, both are named; not if the other has been given another one."""
    for one in KEYS:
        for other in KEYS:
            name = other.keys.split(",")[-1]
            if one is other or (name in TAKEN) or (name in IN_CHOOSER and one.action in ALSO_IN_CHOOSER):
                continue
            for text in (f'{one.action} = "{name}"', f'{one.action} = "x"\n{other.action} = "y,x"'):
                sentence = refused(f"[keys]\n{text}\n", tmp_path)
                assert one.action in sentence
                assert other.action in sentence
            assert read(f'[keys]\n{one.action} = "{name}"\n{other.action} = "x"\n', tmp_path)
