"""What came of a run, in a sentence: the last that is told of it."""

from minicache.core import events as ev
from minicache.sim.phrases import plural
from minicache.sim.timeline import Timeline


def closing_words(timeline: Timeline) -> str:
    """`In all: 5 requests, and 0 of 3,360 prompt tokens found in the cache (0.0%). …`, up to now."""
    arrived = [event for event in timeline.events if isinstance(event, ev.RequestArrived)]
    admitted = [event for event in timeline.events if isinstance(event, ev.RequestAdmitted) and not event.resumed]
    computed = sum(event.num_tokens for event in timeline.events if isinstance(event, ev.TokensComputed))
    sent, found = sum(len(event.tokens) for event in arrived), sum(event.num_cached_tokens for event in admitted)
    rate = timeline.hit_rate(len(timeline) - 1) or 0.0
    evicted = sum(
        len(event.blocks) for event in timeline.events if isinstance(event, ev.BlocksEvicted | ev.NodesEvicted)
    )
    steps = timeline.step_of(len(timeline) - 1) if len(timeline) else 0
    return (
        f"In all: {plural(len(arrived), 'request')}, and {found:,} of {plural(sent, 'prompt token')} found in the "
        f"cache ({rate:.1%}). {plural(computed, 'token')} computed, answers included, in {plural(steps, 'step')}; "
        f"{plural(evicted, 'block')} evicted."
    )
