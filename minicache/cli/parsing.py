"""How the commands read their arguments, and the one sentence for an argument that is wrong.

Typer's parsers of numbers and of choices are replaced by ours before a command is built, so that the sentence is the
same with every version of Typer.
"""

import inspect
import math
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, cast, get_args

import typer
from typer.models import ParameterInfo

from minicache.common.printable import printable
from minicache.common.suggest import not_one_of, suggestion

UsageError = cast(type[Exception], typer.BadParameter.__base__)  # Typer exports only this subclass


def prepare(app: typer.Typer) -> None:
    """Give each parameter of each command of `app` our parser, and show its choices or its kind in the help."""
    for callback in filter(None, (command.callback for command in app.registered_commands)):
        for parameter in inspect.signature(callback).parameters.values():
            for info in getattr(parameter.annotation, "__metadata__", ()):
                kind = next(_kinds_in(get_args(parameter.annotation)[0]), None)
                if kind is None or not isinstance(info, ParameterInfo) or info.parser is not None:
                    continue
                chosen = issubclass(kind, StrEnum)
                info.parser = _choice(kind) if chosen else _number(kind, info.min)
                info.metavar = info.metavar or f"<{'|'.join(kind) if chosen else kind.__name__}>"


def _kinds_in(annotation: Any) -> Iterator[Any]:
    """The types in `int | None`, `list[Choice]` and so on that we parse."""
    if isinstance(annotation, type) and (annotation in (int, float) or issubclass(annotation, StrEnum)):
        yield annotation
    for part in get_args(annotation):
        yield from _kinds_in(part)


def _choice(kind: type[StrEnum]) -> Callable[[str], StrEnum]:
    def parse(value: str) -> StrEnum:
        if value not in list(kind):
            raise typer.BadParameter(not_one_of(value, map(str, kind)))
        return kind(value)

    return parse


def _number(kind: type[int] | type[float], minimum: float | None) -> Callable[[str], float]:
    what = "a whole number" if kind is int else "a number"
    what += "" if minimum is None else f" of at least {minimum}"

    def parse(value: str) -> float:
        try:
            number: float = kind(value)
        except ValueError:
            number = math.nan
        if not -math.inf < number < math.inf or (minimum is not None and number < minimum):
            raise typer.BadParameter(f"must be {what}, not {value!r}")
        return number

    return parse


def sentence(error: Any) -> str:
    """What is wrong, from the fields of a `UsageError`; in the words of its message where the fields do not say it."""
    command = getattr(error.ctx, "command_path", "minicache")
    see = f": `{command} --help` describes its arguments and options"
    parameter = getattr(error, "param", None)
    name = "" if parameter is None else _name(parameter)
    match type(error).__name__:
        case "NoSuchOption":
            flags = [flag for each in error.ctx.command.get_params(error.ctx) for flag in each.opts]
            near = suggestion(error.option_name, flags)
            return f"`{command}` has no option {error.option_name!r}{near or see}"
        case "MissingParameter":
            return f"`{command}` needs {name}{see}"
        case "BadParameter" if name:
            return f"{name} {printable(error.message)}"
        case _:
            return f"{printable(error.message.rstrip('.'))}{see}"


def _name(parameter: Any) -> str:
    return next((flag for flag in parameter.opts if flag.startswith("-")), str(parameter.name).upper())
