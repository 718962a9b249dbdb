"""Every scenario runs as it did when its log was accepted."""

from difflib import unified_diff

import pytest

from tests.sim.goldens import cases, log_of, path_of, stray_files

SHOWN = 60


@pytest.mark.parametrize(("name", "kind"), cases())
def test_the_log_is_the_accepted_one(name, kind):
    path, log = path_of(name, kind), log_of(name, kind)
    accepted = path.read_text(encoding="utf-8") if path.exists() else ""
    if log != accepted:
        diff = list(unified_diff(accepted.splitlines(), log.splitlines(), "accepted", "now", n=2, lineterm=""))
        more = f"\n… and {len(diff) - SHOWN} lines more" if len(diff) > SHOWN else ""
        shown = "\n".join(diff[:SHOWN])
        pytest.fail(f"{name} ({kind}) runs otherwise; `make goldens` accepts it:\n{shown}{more}", pytrace=False)


def test_there_is_no_log_of_a_scenario_that_is_gone():
    assert not list(stray_files())
