"""`minicache model`: the models in the store."""

from typing import Annotated

import typer

from minicache.cli.commands import Commands
from minicache.cli.console import JsonOption, print_json, progress_bar, stdout

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="List models, and download them.",
)


@app.command("list")
def list_command(as_json: JsonOption = False) -> None:
    """List the models that `--model` accepts by name, and whether each is on this machine."""
    from minicache.engine.models import store as model_store

    models = model_store.list_models()
    if as_json:
        folders = [None if model.folder is None else str(model.folder) for model in models]
        rows = zip(models, folders, strict=True)
        print_json([{"name": m.name, "folder": f, "bytes": m.num_bytes, "about": m.about} for m, f in rows])
        return

    from rich.table import Table

    table = Table("model", "here", "size", "what it is", box=None, pad_edge=False, header_style="bold")
    for model in models:
        size = f"{model.num_bytes / 1e6:,.0f} MB" if model.folder else ""
        table.add_row(model.name, "yes" if model.folder else "no", size, model.about)
    stdout().print(table)
    stdout().print()
    stdout().print(
        f"Models are stored in {model_store.models_folder()}; `minicache model pull NAME` fetches one.",
        soft_wrap=True,
    )


@app.command("pull")
def pull_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="smollm2, or ORG/NAME of the Hugging Face hub.")],
    as_json: JsonOption = False,
) -> None:
    """Download a model into the store. A model that is already there is not changed."""
    from minicache.engine.models import store as model_store

    already = name != model_store.TINY and model_store.is_stored(name)
    with progress_bar() as report:
        folder = model_store.pull(name, progress=report)
    if as_json:
        print_json({"name": name, "folder": str(folder), "already_there": already})
    else:
        stdout().print(f"{name} is {'already ' if already else ''}in the store: {folder}", soft_wrap=True)
