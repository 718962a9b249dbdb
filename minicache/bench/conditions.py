"""Under which conditions an experiment ran: no time means anything without them."""

import os
import time
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Conditions:
    """Under which an experiment ran. `load` is the machine's over the last minute, at the end."""

    model: str
    dtype: str
    device: str
    threads: int
    load: float
    seconds: float

    @classmethod
    def now(cls, model: str, started: float) -> "Conditions":
        """Those of this process; `started` is a moment of `time.perf_counter()`."""
        import torch

        load, seconds = os.getloadavg()[0], time.perf_counter() - started
        return cls(model, "float32", "cpu", torch.get_num_threads(), load, seconds)

    def to_json(self) -> dict[str, Any]:
        return {"model": self.model, "dtype": self.dtype, "device": self.device, "threads": self.threads}

    def __str__(self) -> str:
        return (
            f"Token counts are exact. Times are this machine's: {self.device}, {self.dtype}, {self.threads} threads, "
            f"load {self.load:.1f}; {self.seconds:.0f} s in all."
        )
