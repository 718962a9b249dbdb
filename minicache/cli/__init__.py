"""The `minicache` command: `main.py` finds the subcommand, one file per command does the work."""
