"""Train `tiny` and write its folder: `python -m minicache.engine.tiny.train`.

Every step draws new rows from the corpus: mostly short ones, some as long as the context, so that every position is
trained. The last lines printed are the bits per byte of held-out text, with the weights as they are stored.
"""

import argparse
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

from minicache.engine.model_config import ModelConfig
from minicache.engine.models.store import TINY_FOLDER
from minicache.engine.tiny.corpus import Sampler, encode, held_out
from minicache.engine.tiny.decoder import Decoder
from minicache.engine.tiny.folder import CONFIG, write_folder
from minicache.text.byte_tokenizer import ByteTokenizer

SHAPES = ((256, 6, 0.55), (512, 3, 0.28), (1024, 2, 0.09), (2048, 1, 0.05), (4096, 1, 0.03))  # length, rows, share
CHECKPOINT_EVERY = 100
ANSWER = torch.tensor(ByteTokenizer().encode("<|im_start|>assistant\n"))
OPENING = 24  # bytes at the beginning of an answer, which decide its topic


@dataclass(frozen=True)
class Phase:
    """One part of the training, with its own schedule. It starts from the weights that the previous phase stored."""

    name: str
    steps: int
    rate: float  # the highest learning rate
    dropout: float
    prose_share: float  # of the documents
    opening_weight: float  # of the loss of each of an answer's first bytes; other bytes have weight 1


# The match of question and answer is a small part of a text's bits: the first phase alone does not learn it.
PHASES = (Phase("text", 1500, 6e-3, 0.1, 0.42, 1.0), Phase("chat", 800, 4e-3, 0.0, 0.35, 4.0))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Train tiny and write its model folder.")
    parser.add_argument("--phase", choices=[phase.name for phase in PHASES], help="only this one, from what is in OUT")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=TINY_FOLDER)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    # Probabilities and gradients become denormal numbers, which a CPU computes many times slower than others.
    torch.set_flush_denormal(True)
    for index, phase in enumerate(PHASES):
        if options.phase in (None, phase.name):
            seed = options.seed + index
            torch.manual_seed(seed)
            model = load_decoder(options.out, phase.dropout) if index else new_decoder(phase.dropout)
            print(f"{sum(p.numel() for p in model.parameters()):,} parameters, {phase}", flush=True)
            train(model, phase, seed, options.out)
    for kind, bits in bits_per_byte(load_decoder(options.out)).items():
        print(f"{kind}: {bits:.3f} bits per byte of held-out text", flush=True)


def train(model: Decoder, phase: Phase, seed: int, out: Path) -> None:
    """Train `model` in place; write checkpoints into `out`, the last one after the last step."""
    sampler = Sampler(seed, phase.prose_share)
    optimizers = make_optimizers(model, phase.rate)
    started, seen, average = time.perf_counter(), 0, 0.0
    for step in range(1, phase.steps + 1):
        for group in (group for one in optimizers for group in one.param_groups):
            group["lr"] = phase.rate * schedule(step, phase.steps)
        [(length, rows, _)] = sampler.random.choices(SHAPES, [share for _, _, share in SHAPES])
        tokens = torch.tensor([sampler.row(length + 1) for _ in range(rows)])
        model.train()
        loss = next_token_loss(model, tokens, phase.opening_weight)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for one in optimizers:
            one.step()
            one.zero_grad()
        seen += rows * length
        average += (loss.item() - average) / min(step, 100)
        if step % 50 == 0 or step == phase.steps:
            spent = time.perf_counter() - started
            speed = f"{seen / spent:,.0f} tokens/s, {spent:.0f} s"
            print(f"step {step}: loss {average / math.log(2):.3f} bits a token, {speed}", flush=True)
        if step % CHECKPOINT_EVERY == 0 or step == phase.steps:
            write_folder(out, {f"model.{name}": tensor for name, tensor in model.state_dict().items()})
            print(f"step {step}: held out {bits_per_byte(model)}", flush=True)


def make_optimizers(model: Decoder, rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the matrices between embedding and output, AdamW for the embedding and the norms.

    With little text and time, the learning per step counts: here Muon learns more from a step than AdamW.
    """
    matrices = [p for p in model.layers.parameters() if p.ndim == 2]
    others = [model.embed_tokens.weight, *(p for p in model.parameters() if p.ndim == 1)]
    return [
        torch.optim.Muon(matrices, lr=rate, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=rate, betas=(0.9, 0.98), weight_decay=0.0),
    ]


def new_decoder(dropout: float = 0.0) -> Decoder:
    return Decoder(ModelConfig.from_hf(CONFIG), dropout)


def load_decoder(folder: Path, dropout: float = 0.0) -> Decoder:
    """The decoder with the weights stored in `folder`, in float32."""
    model = new_decoder(dropout)
    stored = load_file(folder / "model.safetensors")
    model.load_state_dict({name.removeprefix("model."): tensor.float() for name, tensor in stored.items()})
    return model.eval()


def schedule(step: int, steps: int) -> float:
    """The fraction of the highest learning rate at a step: linear warm-up, then half a cosine down to 0."""
    warm_up = min(100, steps // 10 + 1)
    if step < warm_up:
        return step / warm_up
    return 0.5 * (1 + math.cos(math.pi * (step - warm_up) / (steps - warm_up + 1)))


def next_token_loss(model: nn.Module, tokens: Tensor, opening_weight: float = 1.0) -> Tensor:
    """Weighted mean cross-entropy in nats of the tokens (B, T) except the first; `opening_weight` is for openings."""
    losses = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")
    weights = torch.where(opens_answer(tokens)[:, 1:], opening_weight, 1.0).flatten()
    return (losses * weights).sum() / weights.sum()


def opens_answer(tokens: Tensor) -> Tensor:
    """Which of (B, T) are among the first `OPENING` tokens of an answer."""
    marks = torch.zeros_like(tokens, dtype=torch.bool)
    width = len(ANSWER)
    if tokens.shape[1] > width:
        found = (tokens.unfold(1, width, 1) == ANSWER).all(dim=-1)  # (B, T - width + 1): the header begins here
        for row, start in found.nonzero().tolist():
            marks[row, start + width : start + width + OPENING] = True
    return marks


@torch.inference_mode()
def bits_per_byte(model: nn.Module) -> dict[str, float]:
    """Bits per byte of held-out text, by kind. Control tokens count as bits: a model must predict the end, too."""
    model.eval()
    return {kind: round(_bits(model, documents), 4) for kind, documents in held_out().items()}


def _bits(model: nn.Module, documents: Iterable[str]) -> float:
    bits, num_bytes = 0.0, 0
    for document in documents:
        tokens = torch.tensor([encode(document)])
        bits += next_token_loss(model, tokens).item() * (tokens.shape[1] - 1) / math.log(2)
        num_bytes += int((tokens[0, 1:] < 256).sum())
    return bits / num_bytes


if __name__ == "__main__":
    main()
