"""What would have made an event different, where that depends on its figures."""

from minicache.core import events as ev
from minicache.sim.narrator import Narrator
from minicache.sim.phrases import plural

MODELLED = "Modelled times come from a formula, not from a clock."


def otherwise(event: ev.Event, narrator: Narrator) -> str | None:
    """A sentence, or None where the rule's own says it all. The narrator has just taken the event."""
    match event:
        case ev.StepStarted() if narrator.modelled:
            return f"With a larger max_num_batched_tokens the same work would take fewer steps. {MODELLED}"
        case ev.StepFinished() if narrator.modelled:
            return f"With less to compute the step would have taken less time. {MODELLED}"
        case ev.RequestArrived():
            return _arrived(event, narrator)
        case ev.AdmissionFailed():
            short = event.needed - event.free
            return (
                f"With {plural(short, 'block')} more to be had, or as many of those it found in use by somebody else, "
                "which take no room, it would have been admitted."
            )
        case ev.RequestAdmitted():
            return _admitted(event, narrator)
        case ev.RequestPreempted():
            return (
                f"With more blocks, fewer running requests (max_num_seqs) or shorter outputs {event.request} would "
                "have gone on."
            )
        case ev.RequestFinished():
            return _finished(event, narrator)
        case ev.BlocksEvicted():
            many = len(event.blocks) > 1
            it, they = ("them", "they") if many else ("it", "it")
            return (
                f"With {plural(len(event.blocks), 'block')} more in the pool {they} would have stayed; had somebody "
                f"used {it} meanwhile, {'others' if many else 'another'} would have gone."
            )
        case _:
            return None


def _arrived(event: ev.RequestArrived, narrator: Narrator) -> str:
    needed = -(-(len(event.tokens) + event.max_tokens - 1) // narrator.block_size)
    return (
        f"At its longest it needs {plural(needed, 'block')} of the pool's {narrator.num_blocks - 1:,}: with fewer than "
        f"{needed:,} it would have been refused."
    )


def _admitted(event: ev.RequestAdmitted, narrator: Narrator) -> str | None:
    rest = len(narrator.requests[event.request].tokens) - event.num_cached_tokens - event.num_tokens
    if rest:
        return (
            f"With {plural(rest, 'token')} more to spend on it in this step all of it would have been computed at once."
        )
    if event.num_cached_tokens:
        all_tokens = event.num_cached_tokens + event.num_tokens
        return f"Without the hit {all_tokens:,} tokens would have had to be computed instead of {event.num_tokens:,}."
    return None


def _finished(event: ev.RequestFinished, narrator: Narrator) -> str | None:
    if event.reason == "length":
        return f"With a max_tokens above {narrator.ended[event.request].max_tokens:,} it would have gone on."
    if event.reason == "stop":
        return "Had the token it generated not been a stop token, it would have gone on."
    return None
