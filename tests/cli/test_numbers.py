"""Every option of every command that takes a number, with what is no number or none that a command can use."""

import pytest

from minicache.cli import main as cli
from tests.hostile.arguments import GIVEN, commands

NO_NUMBERS = ("inf", "-inf", "nan", "1e400", "", "one", "0x10", "9" * 5000)
NUMERIC = [
    (name, parameter.opts[0])
    for name, parameters in commands()
    for parameter in parameters
    if parameter.metavar in ("<int>", "<float>") or parameter.opts == ["--at"]
]


def call(name, option, value):
    with pytest.raises(SystemExit) as end:
        cli.main([*name.split(), *GIVEN.get(name, ()), f"{option}={value}"])
    return end.value.code


@pytest.mark.parametrize(("name", "option"), NUMERIC, ids=map(" ".join, NUMERIC))
def test_an_option_refuses_what_is_no_number(name, option, capsys):
    for value in NO_NUMBERS:
        assert call(name, option, value) == 2, value
        out, err = capsys.readouterr()
        [sentence] = err.splitlines()
        assert out == ""
        assert sentence.startswith(f"minicache: {option} must be "), value


def test_the_options_are_found():
    assert {("diff", "--price"), ("sim explain", "--at"), ("tui", "--step"), ("bench core", "--rounds")} <= {*NUMERIC}
