"""Packages that an extra of the distribution brings, and the one sentence for a package that is missing."""

DISTRIBUTION = "minicache-llm"  # the name on the package index; the import and the command are `minicache`

EXTRA_OF_MODULE = {
    "gguf": "engine",
    "matplotlib": "plots",
    "numpy": "engine",
    "safetensors": "engine",
    "torch": "engine",
    "transformers": "engine",
    "triton": "engine",
    "huggingface_hub": "prompts",
    "tokenizers": "prompts",
    "fastapi": "serve",
    "msgspec": "serve",
    "prometheus_client": "serve",
    "uvicorn": "serve",
    "zmq": "serve",
}


def install(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def package_missing(module: str, needed_by: str = "This", extra: str | None = None) -> str:
    """The sentence for a package that cannot be imported: what needs it, and the command that installs it.

    `extra` is the smallest extra with the package unless it is given. Raises `KeyError` for a module of no extra.
    """
    return f"{needed_by} needs the package {module!r}: {install(extra or EXTRA_OF_MODULE[module])}"
