"""Where models are stored."""

import errno
import os
from pathlib import Path

from minicache.core.errors import InvalidArgument


def models_folder() -> Path:
    """The store, which has a folder for each model: `$MINICACHE_HOME/models`, or the user's cache folder. It may not
    exist yet. Raises `InvalidArgument` if the variable names nothing that could be a folder."""
    home = os.environ.get("MINICACHE_HOME")
    if home:
        try:
            folder = Path(home).expanduser() / "models"
            folder.exists()
            nearest = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
            if not nearest.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, f"{nearest} is not a folder")
        except (OSError, RuntimeError) as error:  # too long, locked; a user who does not exist
            words = getattr(error, "strerror", None) or error
            raise InvalidArgument(f"MINICACHE_HOME {home} cannot hold models: {words}") from None
        return folder
    from platformdirs import user_cache_path

    return user_cache_path("minicache") / "models"
