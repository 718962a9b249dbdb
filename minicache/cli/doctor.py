"""`minicache doctor`: what is installed, what works on this machine, and how to add what is missing."""

import platform
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

import typer

import minicache
from minicache.cli.console import JsonOption, print_json, progress_bar, stdout
from minicache.common.packages import DISTRIBUTION, install
from minicache.common.progress import Progress, silent

app = typer.Typer(add_completion=False, rich_markup_mode=None)
EXTRAS = ("prompts", "engine", "serve", "plots")
NOT_KNOWN: list[tuple[str, ...]] = [("  not known", "torch is not installed")]


@dataclass(frozen=True)
class Backend:
    """A device that a model runs on (`kind` "device") or an attention backend ("attention"); `detail` is the reason why
    it works or not."""

    kind: str
    name: str
    works: bool
    detail: str


class Findings:
    """The state of this machine; each part is looked up when first needed. Changes nothing. Calls `report` before
    the parts that take seconds."""

    minicache: str = minicache.__version__
    python: str = platform.python_version()
    system: str = f"{platform.system()} {platform.machine()}"

    def __init__(self, report: Progress = silent) -> None:
        self._report = report

    @cached_property
    def packages(self) -> dict[str, dict[str, str | None]]:
        """For each extra ("": the base install), its packages and their versions, `None` if a package is missing."""
        return {extra: _packages(extra) for extra in ("", *EXTRAS)}

    @cached_property
    def backends(self) -> list[Backend]:
        """Empty without torch. Importing torch takes seconds."""
        self._report("importing torch", 1, 3)
        return _backends()

    @cached_property
    def models(self) -> list[dict[str, str | None]]:
        return _models()

    @cached_property
    def exact(self) -> dict[str, bool]:
        """For each number format and device, whether exact mode may compute several tiles of `tiny` at once. Empty
        without torch."""
        self._report("checking exact mode", 2, 3)
        return _exact()

    @cached_property
    def gaps(self) -> list[str]:
        return list(_gaps(self))

    def to_json(self) -> dict[str, Any]:
        backends = [asdict(backend) for backend in self.backends]
        found = {name: getattr(self, name) for name in ("minicache", "python", "system", "packages")}
        return {**found, "backends": backends, "models": self.models, "exact": self.exact, "gaps": self.gaps}


@app.command()
def doctor(as_json: JsonOption = False) -> None:
    """What is installed, which backends work on this machine, which models are in the store, and how to add what is
    missing."""
    with progress_bar() as report:
        findings = Findings(report)
        if as_json:
            print_json(findings.to_json())
        else:
            _print(findings)


def _packages(extra: str) -> dict[str, str | None]:
    """The packages of an extra on this system, from the installed metadata."""
    found: dict[str, str | None] = {}
    for requirement in requires(DISTRIBUTION) or []:
        spec, _, marker = requirement.partition(";")
        wanted = re.search(r"""extra == ['"](\w+)""", marker)
        if (wanted[1] if wanted else "") != extra or ("platform_system" in marker and platform.system() not in marker):
            continue
        name = re.match(r"[\w.-]+", spec.strip())
        if name:
            found[name[0]] = _version(name[0])
    return found


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _backends() -> list[Backend]:
    try:
        import torch
    except ModuleNotFoundError:
        return []
    from minicache.engine.backends import BACKENDS, make_backend
    from minicache.engine.errors import BackendUnavailable

    cuda, mps = torch.cuda.is_available(), torch.backends.mps.is_available()
    found = [
        Backend("device", "cpu", True, f"{torch.get_num_threads()} threads; models run in float32"),
        Backend("device", "cuda", cuda, torch.cuda.get_device_name() if cuda else "torch sees no CUDA device"),
        Backend("device", "mps", mps, "Apple GPU" if mps else "torch sees no Apple GPU"),
    ]
    device, dtype = ("cuda", torch.bfloat16) if cuda else ("cpu", torch.float32)
    for name, entry in BACKENDS.items():
        try:
            make_backend(name, device, dtype)
        except BackendUnavailable as error:
            found.append(Backend("attention", name, False, str(error)))
        else:
            found.append(Backend("attention", name, True, entry.about))
    return found


def _models() -> list[dict[str, str | None]]:
    from minicache.engine.models import store as model_store

    models = model_store.list_models()
    return [{"name": model.name, "folder": str(model.folder) if model.folder else None} for model in models]


def _exact() -> dict[str, bool]:
    """The results of exact mode's start-up check on this machine; empty without torch."""
    try:
        import torch
    except ModuleNotFoundError:
        return {}
    from minicache.engine.exact import can_stack
    from minicache.engine.models import store as model_store
    from minicache.engine.models.loader import load_model

    folder = model_store.resolve(model_store.TINY)
    formats = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16}
    devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    return {
        f"{name} on {device}": can_stack(load_model(folder, dtype, device))
        for device in devices
        for name, dtype in formats.items()
    }


def _gaps(findings: Findings) -> Iterator[str]:
    for extra in EXTRAS:
        missing = [name for name, installed in findings.packages[extra].items() if installed is None]
        if missing:
            yield f"{', '.join(missing)} missing: {install(extra)}"
    for model in findings.models:
        if model["folder"] is None:
            yield f"model {model['name']} is not in the store: minicache model pull {model['name']}"


def _print(findings: Findings) -> None:
    """Print each section as soon as it is known."""
    from rich.table import Table

    console = stdout()
    console.print(f"minicache {findings.minicache}, Python {findings.python}, {findings.system}")
    for title, rows in _sections(findings):
        table = Table(box=None, pad_edge=False, show_header=False)
        for row in rows:
            table.add_row(*row)
        console.print()
        console.print(title, style="bold")
        console.print(table)
    console.print()
    console.print("Gaps", style="bold")
    for gap in findings.gaps or ["none"]:
        console.print(f"  {gap}", soft_wrap=True)


def _sections(findings: Findings) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    for extra, packages in findings.packages.items():
        title = f"Packages of {DISTRIBUTION}[{extra}]" if extra else f"Packages of {DISTRIBUTION}"
        yield title, [(f"  {name}", installed or "missing") for name, installed in packages.items()]
    yield "Models", [(f"  {model['name']}", model["folder"] or "not in the store") for model in findings.models]
    for title, kind in (("Devices", "device"), ("Attention backends", "attention")):
        found = [backend for backend in findings.backends if backend.kind == kind]
        yield title, [(f"  {b.name}", "works" if b.works else "no", b.detail) for b in found] or NOT_KNOWN
    ways = {True: "several at once", False: "one by one"}
    yield (
        "Exact mode: tiles of tiny computed",
        [(f"  {name}", ways[stacks]) for name, stacks in findings.exact.items()] or NOT_KNOWN,
    )
