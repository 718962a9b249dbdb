"""`minicache` and `python -m minicache`. Only this file is imported before Ctrl-C is handled."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run one command and exit, also if Ctrl-C comes while the command's modules are imported."""
    try:
        from minicache.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
