"""What can go wrong around a model: one error per thing a caller can act on."""

from minicache.core.errors import MinicacheError


class UnknownModel(MinicacheError):
    """The name is neither a model of the store nor a folder that holds one."""


class UnsupportedModel(MinicacheError):
    """The model is of a kind, or uses a feature, that the decoder does not have."""


class BrokenModel(MinicacheError):
    """A file of the model is missing, truncated, corrupt or contradicts another; the message names it."""


class NoTokenizer(MinicacheError):
    """Text was given or wanted, and the model has no tokenizer: use token ids."""


class PullFailed(MinicacheError):
    """A model could not be fetched; the store is as it was before."""


class BackendUnavailable(MinicacheError):
    """The device, data type or attention backend does not work on this machine."""


class PoolTooSmall(MinicacheError):
    """The KV cache does not fit the memory budget; the message says how many tokens would."""


class EngineBusy(MinicacheError):
    """The engine is in the middle of another call; nothing has changed. One thread drives an engine."""
