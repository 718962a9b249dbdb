"""Where models lie."""

import os
from pathlib import Path


def models_folder() -> Path:
    """The store: a folder for each model; it need not exist yet."""
    home = os.environ.get("MINICACHE_HOME")
    if home:
        return Path(home).expanduser() / "models"
    from platformdirs import user_cache_path

    return user_cache_path("minicache") / "models"
