"""Errors around a model: one for each thing that a caller can act on."""

from minicache.core.errors import MinicacheError


class UnknownModel(MinicacheError):
    """The name is neither a model of the store nor a folder that holds one."""


class UnsupportedModel(MinicacheError):
    """The decoder does not have this kind of model, or a feature that the model uses."""


class BrokenModel(MinicacheError):
    """A file of the model is missing, truncated, corrupt or contradicts another; the message names it."""


class NoTokenizer(MinicacheError):
    """The caller gave or asked for text, and the model has no tokenizer: use token ids."""


class PullFailed(MinicacheError):
    """A model could not be fetched; the store is as it was before."""


class BackendUnavailable(MinicacheError):
    """The device, data type or attention backend does not work on this machine."""


class PoolTooSmall(MinicacheError):
    """The KV cache does not fit into memory or the memory budget; the message says how much would."""


class EngineBusy(MinicacheError):
    """Another call of the engine is running; nothing has changed. One thread at a time drives an engine."""


class EngineBroken(MinicacheError):
    """A call was ended in the middle of a change, so the state of the engine may be wrong. `reset` makes it as new."""
