"""Jinja with origins: it writes the same text as `ChatEnvironment`, and every piece of the text is a `Traced`.

The code generator changes three things: literals of the template get their line as origin; text of unknown origin gets
the line of the expression that wrote it; and `strftime_now` gives a `Clock`.
`Traced` does the rest, with the filters below, which replace those that build their text from plain pieces.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import update_wrapper
from itertools import count
from typing import Any

from jinja2 import filters, nodes, pass_eval_context
from jinja2.compiler import Frame
from jinja2.environment import Template
from jinja2.nodes import EvalContext
from jinja2.sandbox import SandboxedFormatter

from minicache.text import json_writer
from minicache.text.bounded import BoundedCodeGenerator, bounded_context
from minicache.text.budget import NODE, Budget
from minicache.text.environment import SPECIAL_TOKENS, ChatEnvironment
from minicache.text.origin import Clock, Literal, Origin, Rendered, Runs, Unknown
from minicache.text.payload import PlacedBool, PlacedInt
from minicache.text.traced import Builder, Traced, first_origin, formatted, join_pieces, mapped, plain_text, runs_of


class OriginBudget(Budget):
    """A budget that also pays for the runs of texts, which take more memory than their characters."""

    __slots__ = ()

    def measured(self, value: Any) -> Any:
        if isinstance(value, Traced):
            self.spend(NODE * len(runs_of(value)[0]))
        return super().measured(value)

    def metered(self, pieces: Iterable[str]) -> Iterator[str]:
        return map(self.measured, pieces)


class OriginCodeGenerator(BoundedCodeGenerator):
    """Jinja's compiler, with origins."""

    environment: "OriginEnvironment"

    def _output_child_to_const(self, node: nodes.Expr, frame: Frame, finalize: Any) -> str:
        raise nodes.Impossible

    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        self.write(f"environment.written({node.lineno}, ")
        super()._output_child_pre(node, frame, finalize)

    def _output_child_post(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        super()._output_child_post(node, frame, finalize)
        self.write(")")

    def visit_TemplateData(self, node: nodes.TemplateData, frame: Frame) -> None:  # noqa: N802 (Jinja's name)
        lines = re.findall(r"[^\n]*\n|[^\n]+", node.data)  # for Jinja only this character ends a line
        self._literal(join_pieces(Traced(text, Literal(node.lineno + i)) for i, text in enumerate(lines)))

    def visit_Const(self, node: nodes.Const, frame: Frame) -> None:  # noqa: N802
        if isinstance(node.value, str):
            self._literal(Traced(node.value, Literal(node.lineno)))
        else:
            super().visit_Const(node, frame)

    def visit_Name(self, node: nodes.Name, frame: Frame) -> None:  # noqa: N802
        special = node.ctx == "load" and node.name in SPECIAL_TOKENS
        self.write(f"environment.special_token({node.lineno}, " if special else "")
        super().visit_Name(node, frame)
        self.write(")" if special else "")

    def visit_Call(self, node: nodes.Call, frame: Frame, forward_caller: bool = False) -> None:  # noqa: N802
        clock = isinstance(node.node, nodes.Name) and node.node.name == "strftime_now"
        self.write(f"environment.clock({node.lineno}, " if clock else "")
        super().visit_Call(node, frame, forward_caller=forward_caller)
        self.write(")" if clock else "")

    def _literal(self, text: Traced) -> None:
        self.environment.literals.append(text)
        self.write(f"environment.literals[{len(self.environment.literals) - 1}]")


class OriginEnvironment(ChatEnvironment):
    """The environment of one template; each template needs its own."""

    code_generator_class = OriginCodeGenerator

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.literals: list[Traced] = []
        self.add_filters(tojson=json_writer.dumps, join=_join, indent=_indent, title=_title)
        self.tests.update(_TESTS)

    @staticmethod
    def concat(pieces: Iterable[Any]) -> Traced:
        """Join pieces of text. Jinja calls this for the output of blocks, macros and `~`."""
        return join_pieces(map(str, pieces))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "*":
            for text, count in ((left, right), (right, left)):
                if isinstance(text, Traced) and isinstance(count, int) and not text._is_uniform():
                    context.budget.spend(NODE * len(runs_of(text)[0]) * max(count, 0))
        return super().call_binop(context, operator, left, right)

    def written(self, line: int, text: str) -> Traced:
        """The text that an expression on line `line` writes, with `Unknown(line)` for characters of unknown origin."""
        lengths, origins = runs_of(text)
        if isinstance(text, Traced) and not any(origin is None for origin in origins):
            return text
        builder, start = Builder(), 0
        for length, origin in zip(lengths, origins, strict=True):
            builder.extend(plain_text(text)[start : start + length], origin or Unknown(line))
            start += length
        return builder.finish()

    def special_token(self, line: int, value: Any) -> Any:
        """A special token such as `bos_token`: text of the template, unless it comes from the request."""
        return Traced(value, Literal(line)) if type(value) is str else value

    def clock(self, line: int, value: Any) -> Any:
        """The result of a call of `strftime_now`. A macro of this name already returns text with origins."""
        return Traced(value, Clock(line)) if type(value) is str else value

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """`str.format` and `format_map` in the sandbox, with the origins of the values that they insert."""
        plain = super().wrap_str_format(value)
        template = getattr(value, "__self__", None)
        if plain is None or not isinstance(template, Traced):
            return plain
        literal = first_origin(template) if len(runs_of(template)[0]) == 1 else None
        formatter = SandboxedFormatter(self)

        def wrapper(*args: Any, **kwargs: Any) -> str:
            whole = plain_text(plain(*args, **kwargs))  # raises what `format` raises
            named = args[0] if value.__name__ == "format_map" else kwargs
            parts = list(formatter.parse(plain_text(template)))
            if any("{" in (spec or "") for _, _, spec, _ in parts):  # a field inside a field: too rare to support
                return Traced(whole)
            return _format(formatter, parts, literal, args, named)

        return update_wrapper(wrapper, value)


def render_with_origins(template: Template, values: dict[str, Any], budget: Budget) -> Rendered:
    """Render a template of an `OriginEnvironment`. Raises every error of the template, as `Template.render` does."""
    builder = Builder()
    try:
        for piece in budget.metered(template.root_render_func(bounded_context(template, values, budget))):
            builder.append(piece)
    except Exception:
        template.environment.handle_exception()
    origins: Any = builder.origins  # every origin is known: `written` has filled in the unknown ones
    return Rendered("".join(builder.parts), Runs.from_lengths(builder.lengths, origins))


def _format(formatter: SandboxedFormatter, parts: Iterable[Any], literal: Origin | None, args: Any, named: Any) -> str:
    """`str.format` of a format string in parts (literal, field, spec, conversion). All literals have one origin."""
    builder, automatic = Builder(), count()
    for text, field, spec, conversion in parts:
        builder.extend(text, literal)
        if field is not None:
            # "{}" and "{.name}" take the next argument.
            name = f"{next(automatic)}{field}" if field[:1] in ("", ".", "[") else field
            value = formatter.convert_field(formatter.get_field(name, args, named)[0], conversion)
            builder.append(formatted(formatter.format_field(value, spec), value))
    return builder.finish()


@pass_eval_context
def _join(context: EvalContext, value: Iterable[Any], d: str = "", attribute: str | int | None = None) -> str:
    if context.autoescape:
        return filters.sync_do_join(context, value, d, attribute)
    if attribute is not None:
        value = map(filters.make_attrgetter(context.environment, attribute), value)
    separator = d if isinstance(d, Traced) else Traced(str(d))
    return separator.join(map(str, value))


def _indent(s: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    if not isinstance(s, Traced):
        return filters.do_indent(s, width, first, blank)
    indention = width if isinstance(width, str) else " " * width
    pieces: list[str] = [indention] if first else []
    lines = (s + "\n").splitlines(keepends=True)
    for number, line in enumerate(lines):
        text = line.splitlines()[0]
        if number and (blank or text):
            pieces.append(indention)
        end = line[len(text) :]
        pieces += (text, end if end == "\n" else "\n")
    return join_pieces(pieces[:-1])


def _title(s: Any) -> str:
    text = str(s)
    return mapped(text, filters.do_title(text))


def _plain(value: Any) -> Any:
    """The plain number or boolean of a placed one; any other value unchanged."""
    if isinstance(value, PlacedBool):
        return bool(value)
    return int(value) if isinstance(value, PlacedInt) else value


_TESTS: dict[str, Callable[..., bool]] = {
    "boolean": lambda value: _plain(value) is True or _plain(value) is False,
    "true": lambda value: _plain(value) is True,
    "false": lambda value: _plain(value) is False,
    "integer": lambda value: isinstance(value, int) and not isinstance(_plain(value), bool),
    "sameas": lambda value, other: _plain(value) is _plain(other),
}
"""The tests of Jinja that depend on the identity or the exact type of a value."""
