"""The simulator with nothing but the standard library: no package can be imported at all."""

import subprocess
import sys
from pathlib import Path

CODE = """
import sys
sys.path.insert(0, sys.argv[1])
from importlib import import_module
from pkgutil import iter_modules
import minicache.sim
for module in iter_modules(minicache.sim.__path__):
    import_module(f"minicache.sim.{module.name}")
from minicache.sim.transcript import transcript
from minicache.sim import Timeline, find_scenario, scenario_names
assert len(scenario_names()) > 20
assert list(transcript(Timeline.record(find_scenario("tail-first"))))
foreign = {name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names) - {"__main__", "minicache"}
assert not foreign, foreign
ours = {name for name in sys.modules if name.startswith("minicache.") and not name.startswith("minicache.sim")}
assert all(name.startswith(("minicache.core", "minicache.common")) for name in ours), ours
"""


def test_it_imports_the_core_and_the_common_helpers_and_nothing_else():
    root = Path(__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-I", "-S", "-c", CODE, str(root)], check=True)
