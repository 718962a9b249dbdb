"""The simulator: the scheduler and the caches of the core, with a clock where an engine has a model.

Start with `scenario.py` and `simulator.py`, then `timeline.py`, which goes back. `words.py` says what an event means,
and `narration.py` says it at any place.
"""

from minicache.sim.cost_model import CostModel
from minicache.sim.library import find_scenario, scenario_names
from minicache.sim.narration import Narration
from minicache.sim.scenario import Scenario
from minicache.sim.simulator import Simulator
from minicache.sim.timeline import Timeline

__all__ = ["CostModel", "Narration", "Scenario", "Simulator", "Timeline", "find_scenario", "scenario_names"]
