"""Tests that draw screens are slow: `make quick ROOM=tui` tries the player and what is below it."""

import pytest

DRAWING = {"drive", "draw", "draw_moves", "screen_of"}  # functions that start the app


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and "tui" in item.path.parts:
            names = getattr(item.function, "__code__", None) and item.function.__code__.co_names
            if DRAWING & set(names or ()) or "terminal" in item.fixturenames:
                item.add_marker("slow")
