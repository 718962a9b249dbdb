"""`python -m minicache` is the `minicache` command."""

from minicache.cli.main import main

if __name__ == "__main__":
    main()
