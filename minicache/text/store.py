"""Where models are stored."""

import os
from pathlib import Path


def models_folder() -> Path:
    """The store, which has a folder for each model: `$MINICACHE_HOME/models`, or the user's cache folder. It may not
    exist yet."""
    home = os.environ.get("MINICACHE_HOME")
    if home:
        return Path(home).expanduser() / "models"
    from platformdirs import user_cache_path

    return user_cache_path("minicache") / "models"
