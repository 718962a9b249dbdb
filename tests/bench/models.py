"""A model folder with a small BPE and no weights: enough for the parts of experiments that run no model."""

import json

from tests.text.tiny_hub import write_hub_folder

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "hidden_act": "silu",
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
}


def write_hub_model(folder, **changes):
    write_hub_folder(folder)
    (folder / "config.json").write_text(json.dumps(CONFIG | changes), encoding="utf-8")
    return str(folder)
