"""Whatever is wrong in the arguments of any command, the user reads one sentence, if possible with the nearest name."""

import inspect
import re
import sys
from enum import StrEnum
from typing import get_args

import pytest
import typer

from minicache.cli import main as cli


def command_of(*path):
    command = typer.main.get_command(cli.app)
    for name in path:
        command = command.get_command(typer.Context(command), name)
    return command


def commands(path=()):
    """Every command, with the words that call it."""
    command = command_of(*path)
    names = [*getattr(command, "list_commands", lambda context: [])(None), *getattr(command, "elsewhere", ())]
    if not names:
        yield path, command
    for name in names:
        yield from commands((*path, name))


def enums_in(annotation):
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        yield annotation
    for part in get_args(annotation):
        yield from enums_in(part)


def choices():
    """(words that call a command, flag or "", a name to choose) for each parameter of each command with a choice."""
    for path, command in commands():
        parameters = inspect.signature(command.callback).parameters
        for parameter in command.params:
            if parameter.name in parameters:
                for choice in enums_in(parameters[parameter.name].annotation):
                    flags = [flag for flag in parameter.opts if flag.startswith("--")]
                    yield path, flags[0] if flags else "", list(choice)[-1].value


def numbers():
    """(words that call a command, flag) for each parameter of each command that takes a number."""
    for path, command in commands():
        parameters = inspect.signature(command.callback).parameters
        for parameter in command.params:
            kind = str(parameters[parameter.name].annotation) if parameter.name in parameters else ""
            if "int" in re.split(r"\W", kind) or "float" in re.split(r"\W", kind):
                yield path, next(flag for flag in parameter.opts if flag.startswith("--"))


GROUPS = sorted({(), *(path[:-1] for path, _ in commands())})
CHOICES = sorted(choices())
NUMBERS = sorted(numbers())
COMMANDS = sorted(path for path, _ in commands())


def call(*args):
    with pytest.raises(SystemExit) as exit:
        cli.main(args)
    return exit.value.code


def misspelt(name):
    return name[:-1] + ("x" if name[-1] != "x" else "y")


def test_there_are_choices_in_every_kind_of_command():
    found = {(*path, flag) for path, flag, _ in CHOICES}
    assert {
        ("sim", "run", "--cache"),
        ("experiment", "breakers", "--cache"),
        ("bench", "engine", "--against"),
        ("kernels", "check", "--dtype"),
        ("diff", "--renderer"),
        ("demo", ""),
        ("tui", "--theme"),
    } <= found


@pytest.mark.parametrize(("path", "flag", "name"), CHOICES, ids=lambda value: " ".join(value) if value else "NAME")
def test_a_misspelt_choice_is_one_sentence_with_the_nearest(path, flag, name, capsys):
    words = [flag, misspelt(name)] if flag else [misspelt(name)]
    assert call(*path, *words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"minicache: {flag or 'NAME'} must be one of ")
    assert err.endswith(f", not {misspelt(name)!r}: did you mean {name!r}?\n")
    assert err.count("\n") == 1


def test_there_are_numbers_in_every_kind_of_command():
    assert {
        ("sim", "explain", "--event"),
        ("experiment", "timestamp", "--seed"),
        ("bench", "core", "--rounds"),
        ("kernels", "check", "--head-size"),
        ("diff", "--price"),
        ("demo", "--seed"),
        ("tui", "--step"),
    } <= {(*path, flag) for path, flag in NUMBERS}


@pytest.mark.parametrize("value", ["x", "", "nan", "1e999"])
@pytest.mark.parametrize(("path", "flag"), NUMBERS, ids=" ".join)
def test_what_is_no_number_is_one_sentence(path, flag, value, capsys):
    assert call(*path, flag, value) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(f"minicache: {flag} must be a (whole )?number( of at least [0-9]+)?, not {value!r}\n", err)


@pytest.mark.parametrize("path", [(), *GROUPS, *COMMANDS], ids=" ".join)
def test_a_wrong_option_is_one_sentence_with_the_nearest(path, capsys):
    program = " ".join(["minicache", *path])
    for flag in (flag for parameter in command_of(*path).params for flag in parameter.opts if flag.startswith("--")):
        assert call(*path, f"{flag}q") == 2
        assert capsys.readouterr() == ("", f"minicache: `{program}` has no option '{flag}q': did you mean {flag!r}?\n")
    assert call(*path, "--xyzzy\n") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"minicache: `{program}` has no option '--xyzzy\\n': `{program} --help` describes")
    assert err.count("\n") == 1


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_too_few_and_too_many_arguments_are_one_sentence(path, capsys):
    arguments = [parameter for parameter in command_of(*path).params if parameter.param_type_name == "argument"]
    cases = [] if any(each.nargs == -1 for each in arguments) else [["one\ntwo"] * (len(arguments) + 1)]
    cases += [[]] if any(each.required for each in arguments) else []
    cases += [[flag] for _path, flag in NUMBERS if path == _path][:1]
    for words in cases:
        assert call(*path, *words) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("minicache: ")
        assert err.endswith(" --help` describes its arguments and options\n") or "NAME must be one of " in err
        assert err.count("\n") == 1


@pytest.mark.parametrize("path", GROUPS, ids=" ".join)
def test_a_misspelt_command_is_one_sentence_with_the_nearest(path, capsys):
    group, program = command_of(*path), " ".join(["minicache", *path])
    for name in [*group.list_commands(None), *group.elsewhere]:
        assert call(*path, f"{name}q") == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err == f"minicache: `{program}` has no command '{name}q': did you mean {name!r}?\n"
    assert call(*path, "xyzzy") == 2
    assert capsys.readouterr().err.endswith(f"'xyzzy': `{program} --help` lists them\n")


@pytest.mark.parametrize("path", GROUPS, ids=" ".join)
def test_the_help_of_a_group_names_every_command_that_can_be_called(path, capsys):
    assert call(*path, "--help") == 0
    out = capsys.readouterr().out
    entries = sys.modules["importlib.metadata"].entry_points(group=command_of(*path).entry_points or "none")
    for name in [*command_of(*path).list_commands(None), *(entry.name for entry in entries)]:
        assert f"\n  {name} " in out
