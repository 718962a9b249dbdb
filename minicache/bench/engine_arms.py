"""The two engines that are compared, with the same interface: prompts in, one greedy token per sequence out."""

from inspect import signature
from pathlib import Path
from typing import Any, Protocol

Prompts = list[list[int]]


class Arm(Protocol):
    name: str

    def start(self, prompts: Prompts) -> list[int]:
        """Forget everything cached, then compute these prompts in one batch. Returns the first token of each."""
        ...

    def step(self) -> list[int]:
        """Compute one more token for each sequence."""
        ...


class MinicacheArm:
    """minicache's whole engine: scheduler, prefix cache and model."""

    name = "minicache"

    def __init__(self, model: str, block_size: int, room: int, max_tokens: int) -> None:
        """`room` is the size of the KV pool in tokens; no request generates more than `max_tokens`."""
        from minicache.engine import Engine, EngineConfig, SamplingParams

        num_blocks = -(-room // block_size) + 1  # block 0 is the null block
        self.engine = Engine(
            EngineConfig(model=model, block_size=block_size, num_blocks=num_blocks, dtype="float32", device="cpu")
        )
        self._params = SamplingParams(max_tokens=max_tokens, ignore_eos=True)
        self._requests: list[str] = []

    def start(self, prompts: Prompts, forget: bool = True) -> list[int]:
        """With `forget=False` the cache keeps its blocks, as between any two requests."""
        for request in self._requests:
            self.engine.abort(request)
        if forget:
            self.engine.scheduler.reset_cache()
        self._requests = [self.engine.submit(prompt, self._params) for prompt in prompts]
        return self.step()

    def step(self) -> list[int]:
        new = {output.request_id: output.new_token_ids[-1] for output in self.engine.step()}
        return [new[request] for request in self._requests]


class TransformersArm:
    """transformers' model and its `DynamicCache`, called as `generate` calls them, but without the rest of `generate`.

    Prompts of different lengths are padded on the left, as its documentation recommends.
    """

    name = "transformers"

    def __init__(self, folder: Path) -> None:
        import torch
        import transformers

        transformers.utils.logging.disable_progress_bar()
        self._torch = torch
        self._model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, trust_remote_code=False
        ).eval()
        # The argument was called past_key_values, and is now called cache; the other name gives a warning a call.
        parameters = signature(self._model.forward).parameters
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"
        self._cache: Any = None

    def start(self, prompts: Prompts) -> list[int]:
        width = max(map(len, prompts))
        padded = [[0] * (width - len(prompt)) + prompt for prompt in prompts]
        mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
        self._cache = None
        self._mask = self._torch.tensor(mask)  # (S, width)
        self._positions = (self._mask.cumsum(-1) - 1).clamp(min=0)
        return self._forward(self._torch.tensor(padded))

    def step(self) -> list[int]:
        self._mask = self._torch.cat((self._mask, self._mask.new_ones(len(self._mask), 1)), dim=1)
        self._positions = self._positions[:, -1:] + 1
        return self._forward(self._tokens)

    def _forward(self, tokens: Any) -> list[int]:
        with self._torch.inference_mode():
            output = self._model(
                tokens,
                attention_mask=self._mask if len(tokens) > 1 else None,
                position_ids=self._positions,
                use_cache=True,
                logits_to_keep=1,
                **{self._cache_name: self._cache},
            )
            self._cache = output[self._cache_name]
            self._tokens = output.logits[:, -1].argmax(-1, keepdim=True)
        chosen: list[int] = self._tokens[:, 0].tolist()
        return chosen
