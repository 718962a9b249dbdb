"""A byte-level BPE tokenizer of a few hundred tokens, made here: a Hugging Face folder without a hub."""

import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

TEXT = ["You are a support bot. Parcels arrive within three working days.", "Zoë naïve €5 日本語 😀😀 привет"] * 4
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
SMOLLM2_TEMPLATE = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}"
    "{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def write_hub_folder(folder: Path, chat_template: str = SMOLLM2_TEMPLATE) -> Path:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    special = [AddedToken(name, special=True, normalized=False) for name in CONTROL]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator(TEXT, trainer)
    backend.save(str(folder / "tokenizer.json"))
    start = {"__type": "AddedToken", "content": "<|im_start|>"}
    config = {"eos_token": "<|im_end|>", "bos_token": start, "chat_template": chat_template}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder
