"""Groups of commands: our own, and those of installed packages, which are found through entry points when called."""

from collections.abc import Mapping
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup

from minicache.cli.parsing import prepare
from minicache.common.suggest import suggestion
from minicache.core.errors import MinicacheError


class UnknownCommand(MinicacheError):
    """No command has this name, neither our own nor one of an installed package."""


class Commands(TyperGroup):
    """A group that answers a wrong name by suggesting the nearest one."""

    entry_points: ClassVar[str] = ""  # the group of entry points that other packages register `typer.Typer`s in
    elsewhere: ClassVar[Mapping[str, str]] = {}  # commands of other packages that the help names, with their help

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command called `name`. Raises `UnknownCommand`. Entry points are read only for names that are not
        ours."""
        command = self.ours(ctx, cmd_name)
        if command is not None:
            return command
        from importlib.metadata import entry_points  # 0.1 s with the scan

        found = {entry.name: entry for entry in entry_points(group=self.entry_points)} if self.entry_points else {}
        if cmd_name in found:
            return named_command(found[cmd_name].load(), cmd_name)
        hint = suggestion(cmd_name, [*self.list_commands(ctx), *found]) or f": `{ctx.command_path} --help` lists them"
        raise UnknownCommand(f"`{ctx.command_path}` has no command {cmd_name!r}{hint}")

    def ours(self, ctx: Any, name: str) -> Any:
        return super().get_command(ctx, name)

    def help_of(self, ctx: Any, name: str) -> str:
        """The first sentence of the command's help."""
        text: str = self.ours(ctx, name).get_short_help_str(limit=200)
        return text

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = {name: self.help_of(ctx, name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl([*(rows | dict(self.elsewhere)).items()])


def named_command(app: typer.Typer, name: str) -> Any:
    """The `click` command of `app`, called `name`."""
    prepare(app)
    command = typer.main.get_command(app)
    command.name = name
    return command
