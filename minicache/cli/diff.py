"""`minicache diff`: which token broke the prefix of two logged requests, and what caused it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minicache.cli.console import JsonOption, json_text, remark, say, writing
from minicache.common.files import existing, require_end, require_writable, write_text
from minicache.core.errors import InvalidArgument, MinicacheError, require_int

if TYPE_CHECKING:
    from minicache.prompts.prompt import Means
    from minicache.prompts.request_log import LoggedRequest
    from minicache.prompts.shown import Shown

app = typer.Typer(add_completion=False, rich_markup_mode=None)


class RendererChoice(StrEnum):
    transformers = "transformers"
    vllm = "vllm"
    sglang = "sglang"


def _rate(value: float | None) -> float | None:
    """A speed or a price with which losses stay numbers of a usual size."""
    if value is not None and not 1e-9 <= value <= 1e15:
        raise typer.BadParameter(f"must be a number from 1e-9 to 1e15, not {value:g}")
    return value


def _rate_or_zero(value: float) -> float:
    return _rate(value) or 0.0 if value else 0.0


@app.command()
def diff(
    requests: Annotated[
        list[str],
        typer.Argument(
            metavar="A B | LOG A B",
            help="Two JSON files, the earlier request first; or a JSON Lines file and two line numbers or ids in it.",
        ),
    ],
    generated: Annotated[
        str | None,
        typer.Option(metavar="FILE|TEXT", help="The raw completion of A, which is cached too.", show_default=False),
    ] = None,
    tokenizer: Annotated[
        str, typer.Option(help="bytes, a folder, a tokenizer.json, a model in the store, or ORG/NAME on the hub.")
    ] = "bytes",
    template: Annotated[
        str | None,
        typer.Option(help="chatml, a file, or as for --tokenizer; by default the tokenizer's.", show_default=False),
    ] = None,
    renderer: Annotated[RendererChoice, typer.Option(help="Render as this server does.")] = RendererChoice.transformers,
    template_seconds: Annotated[
        float,
        typer.Option(
            help="Stop a rendering of the template after so many seconds, or after 33,554,432 characters for each.",
            callback=_rate,
        ),
    ] = 30.0,
    block_size: Annotated[int, typer.Option(help="Tokens in a block of the hash chain.")] = 16,
    prefill_speed: Annotated[
        float | None,
        typer.Option(help="Prompt tokens per second, to give losses in seconds.", callback=_rate, show_default=False),
    ] = None,
    price: Annotated[
        float | None,
        typer.Option(
            help="Price of a million prompt tokens, to give losses in money.", callback=_rate, show_default=False
        ),
    ] = None,
    cached_price: Annotated[
        float, typer.Option(help="Price of a million cached prompt tokens.", min=0, callback=_rate_or_zero)
    ] = 0.0,
    as_json: JsonOption = False,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write a page with the ribbons to this file.", show_default=False),
    ] = None,
    redact: Annotated[bool, typer.Option("--redact", help="Show hashes instead of texts.")] = False,
) -> None:
    """Compare two logged requests: which token broke the prefix, which field or template line caused it, what it costs,
    and how to repair it.

    A request is the body of an API call, alone or as {"time": …, "id": …, "body": {…}, "response": {…}}.

    \b
    Exit status:
      0  nothing is lost: B reuses as much as it can of what A left in the cache
      1  something is lost: the report names each cause
      2  the requests could not be compared: one sentence on stderr says why
    """
    from minicache.prompts.examine import examine
    from minicache.prompts.report import Costs, lines
    from minicache.prompts.shown import Shown

    require_int("--block-size", block_size, 1)
    if html is not None:
        with writing("--html", html):
            require_writable(html, *requests, *filter(None, (generated, template, tokenizer)))
    costs, shown = Costs(prefill_speed, price, cached_price), Shown(redact)
    with _errors_shown_by(shown):
        a, b = _read(requests)
        means = _means(tokenizer, template, renderer, template_seconds, (a, b))
        examined = examine(a, b, means, generated=_generated(generated), block_size=block_size)
        if html is not None:
            from minicache.prompts.html import page

            with writing("--html", html):
                write_text(html, page(examined, costs, shown), errors="backslashreplace")
        if as_json:
            from minicache.prompts.report import to_json

            report = json_text(to_json(examined, costs, shown)).split("\n")
        else:
            report = list(lines(examined, costs, shown))
    _print(report)
    if examined.diff.lost:
        raise typer.Exit(1)


def _print(report: list[str]) -> None:
    """Print the report. If the reader of a pipe is gone, such as `head`, the exit status stays the same."""
    try:
        say(*report)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still to be flushed


@contextmanager
def _errors_shown_by(shown: "Shown") -> Iterator[None]:
    """Show errors of the block as the report would show them: on one line, and with --redact without any text."""
    try:
        yield
    except MinicacheError as error:
        raise InvalidArgument(shown.sentence(str(error), getattr(error, "quotes", ()))) from None
    except Exception as error:
        if not shown.redact or isinstance(error, ModuleNotFoundError):
            raise
        raise InvalidArgument(
            f"a fault of minicache ({type(error).__name__}): the message without --redact says more"
        ) from None


def _read(names: list[str]) -> "tuple[LoggedRequest, LoggedRequest]":
    from minicache.prompts.request_log import read_file, read_pair

    if len(names) == 2:
        return read_file(Path(names[0])), read_file(Path(names[1]))
    if len(names) == 3:
        return read_pair(Path(names[0]), names[1], names[2])
    raise InvalidArgument("give two JSON files, or a JSON Lines file and two line numbers or ids")


def _means(
    tokenizer: str,
    template: str | None,
    renderer: RendererChoice,
    template_seconds: float,
    pair: "tuple[LoggedRequest, LoggedRequest]",
) -> "Means":
    from minicache.prompts.bodies import Api
    from minicache.prompts.prompt import Means
    from minicache.text.sources import open_template, open_tokenizer

    opened = open_tokenizer(tokenizer, patient=False)
    if template is None and all(request.body.api is Api.completion for request in pair):
        return Means(opened)
    from minicache.text.renderer import Renderer, RendererName

    name = template or ("chatml" if tokenizer == "bytes" else tokenizer)
    return Means(opened, Renderer(open_template(name, seconds=template_seconds), RendererName(renderer)))


def _generated(value: str | None) -> str | None:
    """The text of the file or pipe called `value`, or `value` itself if there is none."""
    if not value:
        return value
    path = existing(value)
    if path is not None and not path.is_dir():
        try:
            return require_end(path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise InvalidArgument(f"--generated {value} is not text in UTF-8") from None
        except OSError as error:
            raise InvalidArgument(f"--generated {value} cannot be read: {error.strerror}") from None
    if path is not None:
        remark("--generated: this is the name of a folder, so the value is used as the text")
    elif not any(map(str.isspace, value)) and ("/" in value or Path(value).suffix):
        remark("--generated: there is no such file, so the value is used as the text")
    return value
