"""Jinja's compiler and environment with a budget: the code of a template asks it in every loop, and for every text and
list that the template makes (see `budget.py`).

The result is the same as Jinja's; a template that stays within its budget cannot notice it.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from itertools import islice
from types import BuiltinMethodType, MethodType
from typing import Any

from jinja2 import Template, nodes, pass_context
from jinja2.compiler import CodeGenerator, Frame
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedFormatter
from jinja2.utils import _PassArg

from minicache.text import budget as prices
from minicache.text.budget import NODE, TICK, Budget

# Filters that make nothing, or one number, are as fast as before. All other filters ask the budget: those of texts for
# what they made, those of lists for each item before they begin, and those of `_PRICES` as written there.
FREE = frozenset(
    ["abs", "attr", "count", "d", "default", "filesizeformat", "first", "float", "last", "length", "random"]
)
TEXT = frozenset(["capitalize", "e", "escape", "forceescape", "int", "lower", "round", "safe", "string", "upper"])
COMPARING = frozenset(  # tests that look through both values
    ["in", "==", "eq", "equalto", "!=", "ne", ">", "gt", "greaterthan", ">=", "ge", "<", "lt", "lessthan", "<=", "le"]
)
_ADDED = 8  # texts that may be added before the sum is paid
_OWNERS = (str, bytes, int, float, list, tuple, dict, range)


class BoundedContext(Context):
    """The variables of one rendering, and its budget."""

    budget: Budget

    def derived(self, locals: dict[str, Any] | None = None) -> "BoundedContext":
        context: Any = super().derived(locals)
        context.budget = self.budget
        return context

    def concat(self, pieces: Iterable[Any]) -> str:
        """The text of a macro, a block or `~`."""
        text: str = self.environment.concat(pieces)
        self.budget.spend(len(text))
        return text


class BoundedCodeGenerator(CodeGenerator):
    """Jinja's compiler, whose code asks the budget."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # Nodes and lists of nodes of the tree, which lives as long as this compiler, by id.
        self._bodies: set[int] = set()  # of loops
        self._starred: set[int] = set()  # the x of f(*x), and of a loop over x with a condition
        self._paid: set[int] = set()  # expressions that something around them pays for

    def write_commons(self) -> None:
        super().write_commons()
        self.writeline("budget = context.budget")
        self.writeline("concat = context.concat")
        for name in ("tick", "ticked", "measured", "counted", "starred"):
            self.writeline(f"{name} = budget.{name}")

    def visit_For(self, node: nodes.For, frame: Frame) -> None:  # noqa: N802 (Jinja's name)
        self._bodies.add(id(node.body))
        if node.test is not None:  # is asked of values for which the body does not run
            self._starred.add(id(node.iter))
        super().visit_For(node, frame)

    def blockvisit(self, nodes: Iterable[nodes.Node], frame: Frame) -> None:
        if id(nodes) in self._bodies:
            self.writeline("tick()")
        super().blockvisit(nodes, frame)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802
        self.write("concat(map(str, (")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write(")))")

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> Any:
        asked = self._asked(node)
        self.write(f"{asked}(" if asked else "")
        result = super().visit(node, *args, **kwargs)
        self.write(")" if asked else "")
        return result

    def _asked(self, node: nodes.Node) -> str | None:
        """The method of the budget through which the value of an expression goes."""
        if isinstance(node, (nodes.Call, nodes.Filter, nodes.Test)) and node.dyn_args is not None:
            self._starred.add(id(node.dyn_args))
        if id(node) in self._starred:
            return "starred"
        if isinstance(node, nodes.Add):
            if _changing(node) <= _ADDED:  # only the whole sum
                self._paid.update(id(part) for part in _sums(node) if part is not node)
            return None if id(node) in self._paid else "counted"
        if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Slice):
            return None if id(node) in self._paid else "measured"
        if isinstance(node, (nodes.List, nodes.Dict)) or (isinstance(node, nodes.Tuple) and node.ctx == "load"):
            return "counted" if any(not isinstance(part, nodes.Const) for part in _members(node)) else None
        if isinstance(node, nodes.Compare):
            operands = [node.expr, *(op.expr for op in node.ops)]
            searched = any(op.op in ("in", "notin") and not _constant(op.expr) for op in node.ops)
            return "ticked" if searched or sum(not _constant(operand) for operand in operands) > 1 else None
        return None

    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        if _is_written_at_once(frame):  # the rendering pays for what it writes, piece by piece
            self._paid.add(id(node))
        else:
            self.write("counted(")
        super()._output_child_pre(node, frame, finalize)

    def _output_child_post(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        super()._output_child_post(node, frame, finalize)
        self.write("" if _is_written_at_once(frame) else ")")


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox with a budget for each rendering."""

    code_generator_class = BoundedCodeGenerator
    context_class = BoundedContext
    intercepted_binops = frozenset(["*", "**", "%"])

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        del self.globals["lipsum"]  # writes any length of random text
        self.tests.update((name, _ticking(self.tests[name])) for name in COMPARING)
        self.add_filters(**self.filters)

    def add_filters(self, **filters: Callable[..., Any]) -> None:
        """Add filters, or replace them, with their prices."""
        for name, function in filters.items():
            self.filters[name] = function if name in FREE else _paying(name, function)

    def _compile(self, source: str, filename: str) -> Any:
        with warnings.catch_warnings():
            # Python's warnings about the compiled code, such as `1[0]`, are about no file of ours.
            warnings.simplefilter("ignore")
            return super()._compile(source, filename)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, (str, LoopContext)):  # the same answer, faster: neither has more to hide
            return not attr.startswith("_")
        return super().is_safe_attribute(obj, attr, value)

    def call(self, context: Any, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        budget: Budget = context.budget
        if isinstance(obj, (BuiltinMethodType, MethodType)) and isinstance(obj.__self__, _OWNERS):
            kwargs.pop("_loop_vars", None)  # Jinja's own, for functions that take the context
            kwargs.pop("_block_vars", None)
            name = obj.__name__
            if name == "join" and args:
                args = (_parts(budget, obj.__self__, args[0]), *args[1:])
            elif name not in prices.CHEAP:
                budget.spend(prices.method(budget, obj.__self__, name, (*args, *kwargs.values())))
            return budget.measured(obj(*args, **kwargs))
        method = getattr(obj, "__wrapped__", None)  # of `str.format` in Jinja's sandbox
        if isinstance(method, BuiltinMethodType) and isinstance(method.__self__, str):
            _measure_format(self, budget, method, args, kwargs)
        elif isinstance(obj, Macro) and (obj.catch_varargs or obj.catch_kwargs):
            budget.counted([*args, *kwargs.values()])
        elif isinstance(obj, LoopContext) and args:  # a recursive loop
            budget.starred(args[0])
        budget.tick()
        return budget.counted(super().call(context, obj, *args, **kwargs))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        budget = context.budget
        if isinstance(left, int) and isinstance(right, int):
            if operator == "**":
                budget.spend_bits(left.bit_length() * max(right, 0))
            elif operator == "*":
                budget.spend_bits(left.bit_length() + right.bit_length())
        elif operator == "*":
            for values, count in ((left, right), (right, left)):
                if isinstance(count, int) and isinstance(values, (str, bytes, list, tuple)):
                    each = 1 if isinstance(values, (str, bytes)) else NODE
                    budget.spend(len(values) * max(count, 0) * each)
        elif operator == "%" and isinstance(left, (str, bytes)):
            budget.spend(prices.percent(budget, left, right))
        return budget.counted(self.binop_table[operator](left, right))


def render(template: Template, values: dict[str, Any], budget: Budget) -> str:
    """Render a template of a `BoundedEnvironment`. Raises every error of the template, as `Template.render` does."""
    try:
        return "".join(budget.metered(template.root_render_func(bounded_context(template, values, budget))))
    except Exception:
        template.environment.handle_exception()


def bounded_context(template: Template, values: dict[str, Any], budget: Budget) -> Context:
    context: Any = template.new_context(values)
    context.budget = budget
    return context


def _paying(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that asks the budget before and after."""
    price = _PRICES.get(name)
    given = _PassArg.from_obj(function)

    @pass_context
    @wraps(function)
    def paying(context: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        budget: Budget = context.budget
        if price is not None:
            value = price(budget, value, *args, **kwargs)  # the value again, or a list of the values of an iterator
        elif name in TEXT:
            budget.spend(TICK)
        else:
            budget.spend(TICK + NODE * prices.length(value))
        if given is _PassArg.eval_context:
            result = function(context.eval_ctx, value, *args, **kwargs)
        elif given is _PassArg.environment:
            result = function(context.environment, value, *args, **kwargs)
        elif given is _PassArg.context:
            result = function(context, value, *args, **kwargs)
        else:
            result = function(value, *args, **kwargs)
        return budget.counted(result)

    paying.jinja_pass_arg = _PassArg.context  # type: ignore[attr-defined]  # `wraps` copied the function's own
    return paying


def _ticking(test: Any) -> Callable[..., Any]:
    @pass_context
    def ticking(context: Any, *values: Any) -> Any:
        return context.budget.ticked(test(*values))

    return ticking


def _is_written_at_once(frame: Frame) -> bool:
    return frame.buffer is None and frame.block is None


def _sums(node: nodes.Node) -> Iterator[nodes.Node]:
    """The parts of a sum of any number of texts: the additions, and what they add."""
    parts = [node]
    while parts:
        part = parts.pop()
        yield part
        if isinstance(part, nodes.Add):
            parts += (part.left, part.right)


def _changing(node: nodes.Node) -> int:
    """How many texts a sum adds that are not in the template, or one more than `_ADDED`."""
    changing = (part for part in _sums(node) if not isinstance(part, (nodes.Add, nodes.Const)))
    return sum(1 for _ in islice(changing, _ADDED + 1))


def _members(node: nodes.Node) -> Iterator[nodes.Node]:
    for item in node.items:  # type: ignore[attr-defined]
        yield from (item.key, item.value) if isinstance(item, nodes.Pair) else (item,)


def _constant(node: nodes.Node) -> bool:
    if isinstance(node, (nodes.List, nodes.Tuple, nodes.Dict)):
        return all(isinstance(part, nodes.Const) for part in _members(node))
    return isinstance(node, nodes.Const)


def _parts(budget: Budget, separator: Any, values: Any) -> list[Any]:
    """The values that are joined, paid with the separators between them."""
    parts = list(budget.starred(values))
    budget.spend(len(parts) * (TICK + prices.length(separator)) + sum(map(budget.weigh, parts)))
    return parts


class _MeasuredFormatter(SandboxedFormatter):
    def __init__(self, environment: Any, budget: Budget) -> None:
        super().__init__(environment)
        self._budget = budget

    def format_field(self, value: Any, format_spec: str) -> Any:
        self._budget.spend(TICK + self._budget.weigh(value) + prices.numbers(self._budget, format_spec))
        return super().format_field(value, format_spec)


def _measure_format(environment: Any, budget: Budget, method: Any, args: Any, kwargs: Any) -> None:
    """Pay for `method`, the `format` or `format_map` of a text."""
    if method.__name__ == "format_map":
        if len(args) != 1:
            return  # then it raises an error
        args, kwargs = (), args[0]
    budget.spend(len(method.__self__))
    _MeasuredFormatter(environment, budget).vformat(str.__str__(method.__self__), args, kwargs)


# The prices of filters, with the parameters of the filters.


def _centered(budget: Budget, value: Any, width: Any = 80) -> Any:
    budget.spend(prices.size(width))
    return value


def _indented(budget: Budget, s: Any, width: Any = 4, first: Any = False, blank: Any = False) -> Any:
    each = len(width) if isinstance(width, str) else prices.size(width)
    budget.spend(prices.method(budget, s, "splitlines", ()))
    budget.spend((len(s.splitlines()) + 1) * each if isinstance(s, str) else 0)
    return s


def _replaced(budget: Budget, s: Any, old: Any, new: Any, count: Any = None) -> Any:
    budget.spend(prices.method(budget, str(s), "replace", (old, new)))
    return s


def _trimmed(budget: Budget, value: Any, chars: Any = None) -> Any:
    budget.spend(prices.method(budget, value, "strip", (chars,)))
    return value


def _formatted(budget: Budget, value: Any, *args: Any, **kwargs: Any) -> Any:
    budget.spend(prices.percent(budget, str(value), args or kwargs))
    return value


def _joined(budget: Budget, value: Any, d: Any = "", attribute: Any = None) -> Any:
    return _parts(budget, d, value)


def _summed(budget: Budget, iterable: Any, attribute: Any = None, start: Any = 0) -> Any:
    items = list(budget.starred(iterable))
    if not isinstance(start, (int, float)):  # each sum is a new list
        budget.spend(len(items) * sum(map(budget.weigh, items)) >> 6)
    return items


def _batched(budget: Budget, value: Any, linecount: Any, fill_with: Any = None) -> Any:
    budget.spend(NODE * prices.length(value))
    if fill_with is not None:
        budget.spend(prices.size(linecount) * max(NODE, budget.weigh(fill_with)))
    return value


def _sliced(budget: Budget, value: Any, slices: Any, fill_with: Any = None) -> Any:
    budget.spend(NODE * prices.length(value) + prices.size(slices) * (NODE + budget.weigh(fill_with)))
    return value


def _as_json(
    budget: Budget,
    value: Any,
    ensure_ascii: Any = False,
    indent: Any = None,
    separators: Any = None,
    sort_keys: Any = 0,
) -> Any:
    if indent is not None or separators is not None:
        step = len(indent) if isinstance(indent, str) else prices.size(indent)
        each = step * _depth(value) + sum(map(prices.length, separators or ()))
        budget.spend((budget.weigh(value) // NODE + 1) * each)
    return value


def _depth(value: Any) -> int:
    if not isinstance(value, (list, tuple, dict)):
        return 0
    return 1 + max(map(_depth, value.values() if isinstance(value, dict) else value), default=0)


def _slow(budget: Budget, value: Any, *args: Any, **kwargs: Any) -> Any:
    """A loop of Python over a text."""
    budget.spend(NODE * budget.weigh(value) + sum(map(budget.weigh, (*args, *kwargs.values()))))
    return value


def _quadratic(budget: Budget, value: Any, *args: Any, **kwargs: Any) -> Any:
    """Written for short texts."""
    whole = budget.weigh(value) + sum(map(budget.weigh, (*args, *kwargs.values())))
    budget.spend(whole * whole >> 6)
    return value


_PRICES: dict[str, Callable[..., Any]] = {
    "batch": _batched,
    "center": _centered,
    "format": _formatted,
    "indent": _indented,
    "join": _joined,
    "replace": _replaced,
    "slice": _sliced,
    "sum": _summed,
    "tojson": _as_json,
    "trim": _trimmed,
    **dict.fromkeys(("pprint", "title", "truncate", "urlencode", "wordcount", "xmlattr"), _slow),
    **dict.fromkeys(("striptags", "urlize", "wordwrap"), _quadratic),
}
