"""The simulator: the scheduler and the caches of the core, with a clock where an engine has a model.

Start with `scenario.py` and `simulator.py`, then `timeline.py`, which goes back. `words.py` says what an event means,
and `narrator.py` says it at any place.
"""

from minicache.sim.cost_model import CostModel
from minicache.sim.library import find_scenario, scenario_names
from minicache.sim.narrator import Narrator
from minicache.sim.scenario import Scenario
from minicache.sim.simulator import Simulator
from minicache.sim.timeline import Timeline

__all__ = ["CostModel", "Narrator", "Scenario", "Simulator", "Timeline", "find_scenario", "scenario_names"]
