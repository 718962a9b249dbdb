"""A package that adds a command to minicache through the entry point group."""

import typer

app = typer.Typer()


@app.command()
def hello() -> None:
    print("hello from another package")
