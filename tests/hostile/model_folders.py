"""Model folders and GGUF files that a stranger wrote: small models with spoilt configs, tokenizers and weights."""

import copy
import json
import struct
from functools import cache
from importlib.resources import files
from random import Random
from typing import Any

from tests.hostile.probe import Entry, Probe
from tests.hostile.values import Raw, encoded, spoil, spoil_bytes, text, to_json, value

IMPORTS = ("torch", "safetensors", "gguf", "tokenizers", "minicache.engine", "minicache.engine.models.loader")
IMPORTS += ("minicache.engine.models.gguf", "minicache.bench.three_forms")
TINY = files("minicache.engine.tiny") / "model"
BODY = json.dumps({"messages": [{"role": "user", "content": "one two"}]}).encode()
SIZES = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "head_dim": 8, "num_attention_heads": 2}
SIZES |= {"num_key_value_heads": 1}
CODE = b"open('executed', 'w').close()\n"


def probe(random: Random) -> Probe:
    gguf = random.random() < 0.35
    made = {"m.gguf": _spoilt_gguf(random)} if gguf else {f"m/{n}": c for n, c in _spoilt_folder(random).items()}
    name = "m.gguf" if gguf else "m"
    if random.random() < 0.25:
        made |= {"a.json": BODY, "b.json": BODY}
        argv: tuple[str, ...] = ("diff", "a.json", "b.json", "--tokenizer", name)
    else:
        argv = ("demo", "--quick", "--model", name, *random.choice(((), ("--json",))))
    return Probe(argv, made, writes=("../home/store/",))


# --- a folder -----------------------------------------------------------------------------------------------------


@cache
def folder() -> dict[str, Any]:
    """The files of a small model: JSON as values, weights as bytes."""
    config = {**json.loads((TINY / "config.json").read_text()), **SIZES}
    vocab, hidden, middle = config["vocab_size"], 16, 16
    layer = {
        "self_attn.q_proj": (16, hidden),
        "self_attn.k_proj": (8, hidden),
        "self_attn.v_proj": (8, hidden),
        "self_attn.o_proj": (hidden, 16),
        "mlp.gate_proj": (middle, hidden),
        "mlp.up_proj": (middle, hidden),
        "mlp.down_proj": (hidden, middle),
        "input_layernorm": (hidden,),
        "post_attention_layernorm": (hidden,),
    }
    shapes = {f"model.layers.0.{name}.weight": shape for name, shape in layer.items()}
    shapes |= {"model.embed_tokens.weight": (vocab, hidden), "model.norm.weight": (hidden,)}
    names = ("tokenizer.json", "tokenizer_config.json", "generation_config.json")
    return {
        "config.json": config,
        **{name: json.loads((TINY / name).read_text()) for name in names},
        "model.safetensors": _tensors(shapes),
    }


def _tensors(shapes: dict[str, tuple[int, ...]]) -> tuple[dict[str, Any], bytes]:
    """The header and the data of a file of safetensors in float32."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, shape in shapes.items():
        size = 1
        for dim in shape:
            size *= dim
        values = struct.pack(f"<{size}f", *(((7 * i) % 13 - 6) / 20 for i in range(size)))
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    return header, data


def _spoilt_folder(random: Random) -> dict[str, bytes | Entry]:
    parts = copy.deepcopy(folder())
    header, data = parts.pop("model.safetensors")
    more: dict[str, bytes | Entry] = {}
    match random.randrange(12):
        case 0 | 1 | 2 | 3:
            parts["config.json"] = spoil(random, parts["config.json"], random.choice((1, 1, 2)))
        case 4:
            key = random.choice(("rope_scaling", "rope_parameters", "rope_theta", "rms_norm_eps", "initializer_range"))
            rope = {"rope_type": "llama3", "factor": value(random), "low_freq_factor": value(random)}
            huge = (Raw("1e400"), Raw("9" * 401), Raw("NaN"), 0, -1, 1e-300)
            parts["config.json"][key] = random.choice((rope, value(random), *huge))
        case 5:
            parts["tokenizer.json"] = spoil(random, parts["tokenizer.json"], random.choice((1, 2)))
        case 6:
            name = random.choice(("tokenizer_config.json", "generation_config.json"))
            parts[name] = spoil(random, parts[name], 1)
        case 7:
            header = spoil(random, header, random.choice((1, 2)))
        case 8:
            name = random.choice([name for name in header if name != "__metadata__"])
            kind = random.choice(
                ("I32", "I64", "U8", "BOOL", "F8_E4M3", "C64", "F64", "BF16", "F16", "X", text(random))
            )
            header[name]["dtype"] = kind
        case 9:
            size = random.choice((1, 3))
            data = struct.pack("<f", random.choice((float("nan"), float("inf"), 3e38))) * size + data[4 * size :]
        case 10:
            index = {"weight_map": dict.fromkeys(header, "model.safetensors"), "metadata": {}}
            more["model.safetensors.index.json"] = encoded(to_json(spoil(random, index, 1)))
        case _:
            more |= {"configuration_x.py": CODE, "modeling_x.py": CODE, "pytorch_model.bin": b"\x80\x04cos\nsystem\n."}
            parts["config.json"] |= {
                "auto_map": {"AutoConfig": "configuration_x.X", "AutoModelForCausalLM": "modeling_x.X"},
                "model_type": random.choice(("x", "llama")),
                "architectures": random.choice((["X"], ["LlamaForCausalLM"])),
            }
    written = {name: encoded(to_json(part)) for name, part in parts.items()}
    head = encoded(to_json(header))
    written["model.safetensors"] = struct.pack("<Q", len(head)) + head + data
    if random.random() < 0.2:
        name = random.choice([*written])
        if random.random() < 0.3:
            del written[name]
        else:
            written[name] = spoil_bytes(random, written[name])
    if random.random() < 0.1:
        name = random.choice([*written, "model.safetensors.index.json", "chat_template.jinja"])
        endless = (Entry("fifo"), Entry("null"), Entry("socket"), Entry("folder"), Entry("link", to="/dev/zero"))
        more[name] = random.choice(endless)
    return {**written, **more}


# --- a GGUF file --------------------------------------------------------------------------------------------------

Metadata = list[tuple[str, int, Any]]  # name, type, value; a list is (type of its items, items)
U32, F32, BOOL, TEXT, LIST, I32 = 4, 6, 7, 8, 9, 5
FORMATS = {U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}


@cache
def metadata() -> tuple[tuple[str, int, Any], ...]:
    letters = ["t", "1", "t1", *map(chr, range(97, 114))]
    sizes = {"block_count": 1, "context_length": 64, "embedding_length": 16, "feed_forward_length": 16}
    sizes |= {"attention.head_count": 2, "attention.head_count_kv": 1, "attention.key_length": 8, "vocab_size": 20}
    return (
        ("general.architecture", TEXT, "llama"),
        *((f"llama.{name}", U32, size) for name, size in sizes.items()),
        ("llama.attention.layer_norm_rms_epsilon", F32, 1e-5),
        ("llama.rope.freq_base", F32, 10000.0),
        ("tokenizer.ggml.model", TEXT, "gpt2"),
        ("tokenizer.ggml.pre", TEXT, "smollm"),
        ("tokenizer.ggml.tokens", LIST, (TEXT, letters)),
        ("tokenizer.ggml.token_type", LIST, (I32, [1] * 20)),
        ("tokenizer.ggml.merges", LIST, (TEXT, ["t 1"])),
        ("tokenizer.ggml.bos_token_id", U32, 1),
        ("tokenizer.ggml.eos_token_id", U32, 2),
        ("tokenizer.chat_template", TEXT, "{% for m in messages %}{{ m.content }}{% endfor %}"),
    )


def _text(content: str) -> bytes:
    raw = encoded(content)
    return struct.pack("<Q", len(raw)) + raw


def _value(kind: int, content: Any) -> bytes:
    if kind == TEXT:
        return _text(content)
    if kind == LIST:
        inner, items = content
        return struct.pack("<IQ", inner, len(items)) + b"".join(_value(inner, item) for item in items)
    return struct.pack(FORMATS[kind], content)


def _spoilt_gguf(random: Random) -> bytes:
    kept: Metadata = list(metadata())
    shapes = {"token_embd.weight": (16, 20), "output_norm.weight": (16,), "blk.0.attn_q.weight": (16, 16)}
    shapes |= {f"blk.0.attn_{name}.weight": (16, 8) for name in "kv"}
    shapes |= {f"blk.0.{name}.weight": (16, 16) for name in ("attn_output", "ffn_gate", "ffn_up", "ffn_down")}
    shapes |= {f"blk.0.{name}.weight": (16,) for name in ("attn_norm", "ffn_norm")}
    kinds, offsets = dict.fromkeys(shapes, 0), {}
    for _ in range(random.choice((0, 1, 1, 2))):
        place = random.randrange(len(kept))
        name, kind, old = kept[place]
        match random.randrange(6):
            case 0:
                kept.pop(place)
            case 1:
                kept[place] = (name, TEXT, text(random))
            case 2:
                kept[place] = (name, U32, random.choice((0, 1, 3, 1 << 31, (1 << 32) - 1)))
            case 3:
                kept[place] = (name, F32, random.choice((0.0, -1.0, 3e38, float("nan"), float("inf"))))
            case 4:
                kept[place] = (name, LIST, random.choice(((TEXT, []), (I32, [-1] * 20), (TEXT, [text(random)] * 20))))
            case _:
                kept[place] = (text(random) if random.random() < 0.3 else name, kind, old)
    for _ in range(random.choice((0, 0, 1))):
        name = random.choice([*shapes])
        match random.randrange(4):
            case 0:
                del shapes[name]
            case 1:
                shapes[name] = random.choice(((), (0,), (1, 1, 1, 1), (16, 1 << 60), (1 << 31, 1 << 31), (32, 8)))
            case 2:
                kinds[name] = random.choice((1, 2, 3, 8, 12, 24, 26, 27, 30, 99, 1 << 31))
            case _:
                offsets[name] = random.choice((1, 1 << 20, 1 << 63))
    head = b"GGUF" + struct.pack("<IQQ", random.choice((3, 3, 3, 3, 2, 1, 99)), len(shapes), len(kept))
    head += b"".join(_text(name) + struct.pack("<I", kind) + _value(kind, content) for name, kind, content in kept)
    place = 0
    for name, shape in shapes.items():
        head += _text(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", dim) for dim in shape)
        head += struct.pack("<IQ", kinds[name], offsets.get(name, place))
        place += 2048
    head += b"\0" * (-len(head) % 32)
    content = head + struct.pack("<f", 0.05) * (512 * len(shapes))
    return spoil_bytes(random, content) if random.random() < 0.15 else content
