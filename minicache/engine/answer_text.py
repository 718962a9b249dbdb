"""One answer's text as its tokens come."""

from minicache.engine.sampling_params import SamplingParams
from minicache.engine.stop_strings import StopStrings
from minicache.text.tokenizer import StreamDecoder, Tokenizer


class AnswerText:
    """Gives out whole characters only, and nothing that may belong to a stop string."""

    def __init__(self, tokenizer: Tokenizer, params: SamplingParams) -> None:
        self._tokenizer = tokenizer
        self._decoder = StreamDecoder(tokenizer)
        self._stops = StopStrings(tuple(params.stop))
        self._min_tokens = params.min_tokens
        self._num_tokens = 0

    @property
    def stop(self) -> str | None:
        """The stop string that ended the text."""
        return self._stops.found

    def push(self, token: int) -> str:
        """The text that may be shown since `token` came."""
        self._num_tokens += 1
        return self._stops.push(self._decode(token), ends=self._num_tokens > self._min_tokens)

    def finish(self) -> str:
        """All that is left: U+FFFD for a character that never became whole, and what began like a stop string."""
        rest = self._stops.push(self._decoder.finish(), ends=self._num_tokens > self._min_tokens)
        return rest + self._stops.rest()

    def of(self, token: int) -> str:
        """A token's text by itself."""
        return self._tokenizer.decode([token], keep_control=True) if self._knows(token) else ""

    def _decode(self, token: int) -> str:
        return self._decoder.push(token) if self._knows(token) else ""

    def _knows(self, token: int) -> bool:
        """Models often have rows beyond their tokenizer's vocabulary; such a token has no text."""
        return token < self._tokenizer.vocab_size
