"""What the tokens of a run say: text, the names of segments, numbers of generated tokens, or what a tokenizer makes of
them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from minicache.sim.fork import Change, EditPrompt, InjectRequest
from minicache.sim.prompt import OutputOf, Part, Run, Tokens, build
from minicache.sim.run_index import RunIndex
from minicache.sim.timeline import Timeline

from .token_text import Decoder, TokenText

KEPT = 64  # requests whose pieces are kept


def written_prompts(timeline: Timeline) -> dict[str, tuple[Part, ...]]:
    """Request -> its prompt as the scenario and the changes of forks write it; nothing for a recorded log."""
    if timeline.scenario is None:
        return {}
    parts = {spec.id: spec.prompt for spec in timeline.scenario.requests}
    for change in _flat(change for _, change in timeline.changes):
        if isinstance(change, InjectRequest):
            parts[change.spec.id] = change.spec.prompt
        elif isinstance(change, EditPrompt):
            parts[change.request] = change.prompt
    return parts


def _flat(changes: Iterable[Change]) -> Iterator[Change]:
    """A change may consist of several."""
    for change in changes:
        inner = getattr(change, "changes", None)
        if isinstance(inner, tuple):
            yield from _flat(inner)
        else:
            yield change


def label_runs(
    parts: Sequence[Part], tokens: Sequence[int], seed: int, outputs: Mapping[str, Sequence[int]]
) -> list[Run]:
    """Which tokens of the prompt come from which part; nothing if the parts do not give these tokens. A part that is
    written as tokens, as those of a recorded run are, has no name of its own."""
    if any(isinstance(part, OutputOf) and part.request not in outputs for part in parts):
        return []
    built, runs = build(parts, seed, outputs)
    named = [run for run, part in zip(runs, parts, strict=True) if not isinstance(part, Tokens)]
    return named if built == list(tokens) else []


def show_ids(tokens: Sequence[int]) -> str:
    """The tokens of an engine, of which nobody knows the text."""
    return " ".join(map(str, tokens))


class Texts:
    """The text of each request's tokens in one run."""

    def __init__(self, timeline: Timeline, index: RunIndex, decode: Decoder | None = None) -> None:
        self.timeline = timeline
        self.index = index
        self.decode = decode or (None if timeline.token_words.simulated else show_ids)
        self._prompts = written_prompts(timeline)
        self._runs: dict[str, list[Run]] = {}
        self._pieces: dict[str, dict[tuple[int, int], str]] = {}  # of requests that were shown lately

    def of(self, request: str, tokens: Sequence[int], num_prompt_tokens: int) -> TokenText:
        """The tokens of a request, of which the first are its prompt."""
        if request not in self._runs:
            parts = self._prompts.get(request, ())
            seed = self.timeline.scenario.seed if self.timeline.scenario else 0
            self._runs[request] = label_runs(parts, tokens[:num_prompt_tokens], seed, self._quoted(parts))
        if len(self._pieces) > KEPT:
            self._pieces.pop(next(iter(self._pieces)))  # one at a time: to let go of all takes long
        return TokenText(tokens, self._runs[request], self.decode, self._pieces.setdefault(request, {}))

    def _quoted(self, parts: Sequence[Part]) -> dict[str, list[int]]:
        """The answers that a prompt quotes, as far as there are any."""
        quoted = {part.request for part in parts if isinstance(part, OutputOf)} & self.index.requests.keys()
        return {id: output for id in quoted if (output := self.index.requests[id].output)}

    def of_run(self, tokens: Sequence[int], request: str | None = None, start: int = 0) -> TokenText:
        """Tokens that a cache holds; they begin at token `start` of `request`, if that is known."""
        runs = self._runs_of(request) if request is not None else []
        moved = [Run(run.start - start, run.end - start, run.label) for run in runs if run.end > start]
        return TokenText(tokens, moved, self.decode)

    def _runs_of(self, request: str) -> list[Run]:
        if request not in self._runs and request in self.index.requests:
            arrival = self.timeline.events[self.index.requests[request].arrived]
            tokens = getattr(arrival, "tokens", ())
            self.of(request, tokens, len(tokens))
        return self._runs.get(request, [])
