"""The screens are those that were accepted, character by character, and colour by colour."""

import pytest

from .snapshots import FOLDER, SNAPSHOTS, Snapshot, screen_of


@pytest.mark.parametrize("snapshot", SNAPSHOTS, ids=[snapshot.name for snapshot in SNAPSHOTS])
def test_a_screen_is_as_it_was_accepted(snapshot: Snapshot) -> None:
    shown, accepted = screen_of(snapshot), snapshot.accepted
    assert shown.text.splitlines() == accepted.text.splitlines(), "`make goldens` accepts what is shown now"
    same_colours = shown.picture == accepted.picture  # a comparison of long lines by pytest would take minutes
    assert same_colours, f"the same text in other colours than {snapshot.paths[1]}; `make goldens` accepts them"
    assert len(shown.text.splitlines()) == snapshot.size[1]
    if snapshot.ascii:
        assert shown.text.isascii()


def test_there_are_no_other_files() -> None:
    assert set(FOLDER.iterdir()) == {path for snapshot in SNAPSHOTS for path in snapshot.paths}


def test_the_themes_show_the_same_text_in_other_colours() -> None:
    dark, light = (next(s for s in SNAPSHOTS if s.name == name).accepted for name in ("miss-large", "miss-large-light"))
    assert dark.text == light.text
    assert dark.picture != light.picture
