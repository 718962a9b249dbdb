"""The conditions of an experiment: a time means nothing without them."""

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minicache.engine import Engine


@dataclass(frozen=True)
class Conditions:
    """The software and the machine of a run. `load` is the machine's load average over the last minute of the run."""

    model: str
    dtype: str
    device: str
    threads: int
    load: float
    seconds: float

    @classmethod
    def of(cls, engine: "Engine", started: float) -> "Conditions":
        """The conditions of an engine in this process, which `started` at this time of `time.perf_counter()`."""
        import torch

        kv = engine.runner.kv_cache.k[0]
        dtype, device = str(kv.dtype).removeprefix("torch."), str(kv.device)
        seconds = time.perf_counter() - started
        return cls(str(engine.config.model), dtype, device, torch.get_num_threads(), os.getloadavg()[0], seconds)

    def to_json(self) -> dict[str, Any]:
        return {"model": self.model, "dtype": self.dtype, "device": self.device, "threads": self.threads}

    def __str__(self) -> str:
        return (
            f"Token counts are exact. Times are this machine's: {self.device}, {self.dtype}, {self.threads} threads, "
            f"load {self.load:.1f}; {self.seconds:.0f} s in all."
        )
