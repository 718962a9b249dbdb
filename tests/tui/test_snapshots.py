"""The screens are those that were accepted, character by character, colours included."""

import pytest

from .snapshots import FOLDER, SNAPSHOTS, Snapshot, screen_of


@pytest.mark.parametrize("snapshot", SNAPSHOTS, ids=[snapshot.name for snapshot in SNAPSHOTS])
def test_a_screen_is_as_it_was_accepted(snapshot: Snapshot) -> None:
    shown = screen_of(snapshot).splitlines()
    accepted = snapshot.path.read_text(encoding="utf-8").splitlines()
    assert shown == accepted, "`make goldens` accepts what is shown now"
    assert len(shown) == snapshot.size[1] + 1
    if snapshot.ascii:
        assert all(line.isascii() for line in shown)


def test_there_are_no_other_files() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {snapshot.path.name for snapshot in SNAPSHOTS}


def test_the_themes_show_the_same_text_in_other_colours() -> None:
    dark, light = (
        (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines() for name in ("miss-large", "miss-large-light")
    )
    assert dark[:-1] == light[:-1]
    assert dark[-1] != light[-1]
