"""The shape of a decoder, read from a Hugging Face `config.json`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from minicache.engine.errors import BrokenModel, UnsupportedModel

ARCHITECTURES = {
    "LlamaForCausalLM": "llama",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
}
LARGEST_NUMBER = 3e38  # float32 has no larger one
MOST_LAYERS = 1_000  # several times those of the deepest model in use
LARGEST_CONTEXT = 1 << 24


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """Llama 3's stretch of the rotary frequencies: slow ones are divided by `factor`, fast ones kept."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_positions: int


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The shape of a Llama-family decoder. Families differ in three flags: two biases, and the norm of Q and K."""

    family: str  # "llama" | "qwen2" | "qwen3"
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    max_positions: int
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    rope_scaling: RopeScaling | None = None
    tie_embeddings: bool = False
    qkv_bias: bool = False  # Qwen2, and Llama with attention_bias
    output_bias: bool = False  # Llama with attention_bias
    qk_norm: bool = False  # Qwen3

    @classmethod
    def from_hf(cls, config: Mapping[str, Any]) -> "ModelConfig":
        """Read a Hugging Face config; raises `UnsupportedModel` or `BrokenModel`, naming the field."""
        family = _family(config)
        heads = _positive(config, "num_attention_heads")
        hidden = _positive(config, "hidden_size")
        kv_heads = _positive(config, "num_key_value_heads", heads)
        if heads % kv_heads:
            raise BrokenModel(f"config.json: {heads} attention heads cannot share {kv_heads} key-value heads evenly")
        head_dim = _positive(config, "head_dim", 128 if family == "qwen3" else hidden // heads)
        if head_dim % 2:
            raise BrokenModel(f"config.json: head_dim must be even for rotary embeddings, not {head_dim}")
        attention_bias = bool(config.get("attention_bias", False))
        theta, scaling = _rope(config)
        return cls(
            family=family,
            vocab_size=_positive(config, "vocab_size"),
            hidden_size=hidden,
            intermediate_size=_positive(config, "intermediate_size"),
            num_layers=_num_layers(config),
            num_heads=heads,
            num_kv_heads=kv_heads,
            head_dim=head_dim,
            max_positions=_context(config),
            rms_norm_eps=_number(config, "rms_norm_eps", 1e-6),
            rope_theta=theta,
            rope_scaling=scaling,
            tie_embeddings=bool(config.get("tie_word_embeddings", False)),
            qkv_bias=attention_bias or family == "qwen2",
            output_bias=attention_bias,
            qk_norm=family == "qwen3",
        )


def _family(config: Mapping[str, Any]) -> str:
    named = config.get("architectures") or []
    if not isinstance(named, list):
        raise BrokenModel(f"config.json: architectures must be a list of names, not {named!r}")
    for architecture in named:
        if isinstance(architecture, str) and architecture in ARCHITECTURES:
            family = ARCHITECTURES[architecture]
            break
    else:
        what = ", ".join(map(str, named)) or f"model_type {config.get('model_type')!r}"
        raise UnsupportedModel(f"config.json: {what} is not supported; supported are {', '.join(ARCHITECTURES)}")
    if config.get("model_type", family) != family:  # other programs choose their code by this field
        raise UnsupportedModel(f"config.json: model_type is {config['model_type']!r}, and {architecture} is a {family}")
    for field, value in (("hidden_act", "silu"), ("use_sliding_window", False), ("mlp_bias", False)):
        if config.get(field, value) != value:
            raise UnsupportedModel(f"config.json: {field} {config[field]!r} is not supported, only {value!r}")
    if "quantization_config" in config:
        raise UnsupportedModel("config.json: quantised weights are not supported; use an unquantised copy of the model")
    return family


def _positive(config: Mapping[str, Any], field: str, default: int | None = None) -> int:
    value = config.get(field)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BrokenModel(f"config.json: {field} must be a positive integer, not {value!r}")
    return value


def _num_layers(config: Mapping[str, Any]) -> int:
    """The number of layers, which is limited because each is made before its weights are looked for."""
    layers = _positive(config, "num_hidden_layers")
    if layers > MOST_LAYERS:
        raise BrokenModel(f"config.json: num_hidden_layers must be at most {MOST_LAYERS:,}, not {layers:,}")
    return layers


def _context(config: Mapping[str, Any]) -> int:
    """The context in tokens. It is limited because the engine keeps a row of its rotary table for each position."""
    context = _positive(config, "max_position_embeddings", 2048)
    if context > LARGEST_CONTEXT:
        raise BrokenModel(f"config.json: max_position_embeddings must be at most {LARGEST_CONTEXT:,}, not {context:,}")
    return context


def _number(config: Mapping[str, Any], field: str, default: float | None = None) -> float:
    value = config.get(field)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise BrokenModel(f"config.json: {field} must be a positive number, not {value!r}")
    if value > LARGEST_NUMBER:
        raise BrokenModel(f"config.json: {field} must be at most {LARGEST_NUMBER}, not {value!r}")
    return float(value)


def _rope(config: Mapping[str, Any]) -> tuple[float, RopeScaling | None]:
    """Rotary base and scaling, from `rope_parameters` (transformers 5) or `rope_theta` and `rope_scaling` (4)."""
    parameters = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if not isinstance(parameters, Mapping):
        raise BrokenModel(f"config.json: rotary parameters must be an object, not {parameters!r}")
    theta = _number({"rope_theta": config.get("rope_theta"), **parameters}, "rope_theta", 10000.0)
    kind = parameters.get("rope_type", parameters.get("type", "default"))
    if kind == "default":
        return theta, None
    if kind != "llama3":
        raise UnsupportedModel(f"config.json: rotary scaling {kind!r} is not supported, only 'llama3'")
    try:
        scaling = RopeScaling(
            factor=_number(parameters, "factor"),
            low_freq_factor=_number(parameters, "low_freq_factor"),
            high_freq_factor=_number(parameters, "high_freq_factor"),
            original_max_positions=_positive(parameters, "original_max_position_embeddings"),
        )
        if scaling.high_freq_factor <= scaling.low_freq_factor:
            raise BrokenModel("config.json: high_freq_factor must be above low_freq_factor")
        return theta, scaling
    except BrokenModel as error:
        raise BrokenModel(f"{error} (llama3 rotary scaling)") from None
