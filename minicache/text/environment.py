"""The Jinja environment of chat templates, with the additions to plain Jinja that transformers 5.24 makes.

Templates are programs from model folders, so they run in Jinja's immutable sandbox, within a budget (`budget.py`), with
a `dict` that is not a class and a `namespace` without private attributes.
"""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.utils import Namespace

from minicache.text.bounded import BoundedEnvironment

SPECIAL_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


class GenerationBlock(Extension):
    """`{% generation %} … {% endgeneration %}` marks the assistant's text for training; here it only renders its
    body."""

    tags = {"generation"}  # noqa: RUF012 (the name and type that Jinja asks for)

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body).set_lineno(line)


class ChatEnvironment(BoundedEnvironment):
    """`now` is the clock that `strftime_now` reads."""

    def __init__(self, *, now: Callable[[], datetime] = datetime.now, **options: Any) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, GenerationBlock], **options)
        self.add_filters(tojson=to_json)
        self.globals.update(
            raise_exception=_raise_exception,
            strftime_now=lambda format: now().strftime(format),
            dict=_MakeDict(),
            namespace=_PublicNamespace,
        )


def to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Plain JSON. Jinja's own filter escapes `<`, `>`, `&` and `'` for HTML, which would change the tokens."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class _MakeDict:
    """The `dict` of templates: a callable that makes dicts, without the attributes of a class."""

    def __call__(self, *args: Any, **members: Any) -> dict[Any, Any]:
        return dict(*args, **members)

    def fromkeys(self, *args: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args)


class _PublicNamespace(Namespace):
    """A namespace that refuses names that start with an underscore, because these could give access to Python."""

    def __init__(*args: Any, **members: Any) -> None:
        self, args = args[0], args[1:]  # so that an attribute may be named `self`
        attributes = dict(*args, **members)
        for name in attributes:
            _check_name(name)
        Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)

    def __repr__(self) -> str:
        return "<Namespace>"  # without what it holds: that changes, so no budget knows how long it is when written


def _check_name(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"the namespace attribute {name!r} starts with an underscore, which is not allowed")


def _raise_exception(message: str) -> NoReturn:
    raise TemplateError(message)
