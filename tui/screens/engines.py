"""The live engines that can be chosen: each is loaded in a thread, and opened when it is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import work
from textual.screen import Screen

from minicache.common.packages import package_missing
from minicache.core.errors import MinicacheError

if TYPE_CHECKING:
    from ..app import MinicacheApp
    from ..live import LiveEngine

ENGINES = {
    "tiny": "A model of a million parameters that comes with minicache; a byte is a token.",
    "smollm2": "SmolLM2-135M; a token is a word, or a part of one. `minicache model pull smollm2` fetches it first.",
}
LOADING = 600  # seconds, at most, that a note about it stays


class Engines(Screen[None]):
    """A screen from which an engine is started. Only one is loaded at a time."""

    app: MinicacheApp

    def __init__(self) -> None:
        super().__init__()
        self._loading = ""  # the model that is being loaded

    def serving(self, id: str) -> LiveEngine | None:
        """The engine that an option stands for, if it serves."""
        live = self.app.live
        return live if live is not None and id == f"engine {live.model}" else None

    def load(self, model: str) -> None:
        """Start it, and open it when it is there."""
        if self._loading:
            self.notify(f"{self._loading} is being loaded: wait for it.")
        else:
            self._loading = model
            self.notify(f"Loading {model} …", timeout=LOADING)
            self._load(model)

    @work(thread=True)
    def _load(self, model: str) -> None:
        from ..live import LiveEngine

        try:
            live = LiveEngine(model)
        except (MinicacheError, ModuleNotFoundError) as error:
            self.app.call_from_thread(self._loaded, None, _sentence(error))
        else:
            self.app.call_from_thread(self._loaded, live)

    def _loaded(self, live: LiveEngine | None, error: str = "") -> None:
        """Open it, unless something else is looked at meanwhile."""
        self._loading = ""
        self.app.clear_notifications()
        if live is None:
            self.app.notify(error, severity="error")
            return
        self.app.keep_engine(live)
        if self.app.screen is self:
            self.app.open_stage(live.player, live)
        else:
            self.app.notify(f"{live.model} is loaded: the chooser opens it.")


def _sentence(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        return package_missing(error.name or "torch", "A live engine", extra="engine")
    return str(error)
