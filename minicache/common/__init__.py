"""Helpers that every room may use. Standard library only; `common` and `core` never import each other."""
