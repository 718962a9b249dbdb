"""The timestamp experiment as a person reads it."""

from rich.console import Console

from minicache.bench.charts import Panel
from minicache.bench.tables import NAMES, bar, plain_table, rows_table
from minicache.bench.timestamp import ANSWER, AT_END, AT_TOP, BLOCK_SIZE, BLOCKS, FORMS, IN_TURN, SYSTEM_TOKENS
from minicache.bench.timestamp_result import DEFINITION, Result, Run, StreamRates
from minicache.bench.timestamp_stream import SECONDS_BETWEEN, clock


def print_header(model: str, console: Console) -> None:
    console.print(
        f"A support bot is told the time of day, as {clock(0)}: at the top of its system prompt, at its end, or in the "
        f"user's turn. Rendered by {model}'s chat template, each form has exactly {SYSTEM_TOKENS:,} tokens up to the "
        f"end of the system prompt: {BLOCKS} blocks of {BLOCK_SIZE}."
    )


def print_report(result: Result, console: Console) -> None:
    for run in result.runs:
        _print_run(run, console)
    _print_stream(result.runs[0].stated, console)
    expected = ", ".join(f"{blocks} {form}" for form, blocks in result.runs[0].expected.items())
    console.print(f"\nreusable blocks as expected ({expected}): {'yes' if result.as_expected else 'no'}", style="bold")
    console.print(str(result.conditions))


def _print_run(run: Run, console: Console) -> None:
    console.print(f"\n{NAMES[run.cache]}, block size {run.timed.block_size}", style="bold")
    console.print(f"\nWhat a request finds of one a second earlier, in blocks of {run.reuse_block_size}")
    for form, blocks in run.reusable.items():
        console.print(f"  {form:<17} {bar(blocks / BLOCKS)} {blocks:>5} of {BLOCKS}", soft_wrap=True)
    console.print(f"\nHit rate over {run.stated.stream.requests} requests")
    for form, rate in run.stated.hit_rates.items():
        console.print(f"  {form:<17} {bar(rate)} {rate:>6.1%}", soft_wrap=True)
    slowest = max(row.median_ttft_ms for row in run.timed.rows)
    console.print(f"\nTime to first token, median of {len(run.timed.rows[0].answers)} requests a form")
    for row in run.timed.rows:
        waited = row.median_ttft_ms
        console.print(f"  {row.form:<17} {bar(waited / slowest)} {waited:>5,.0f} ms", soft_wrap=True)
    console.print()
    console.print(rows_table(run.timed.rows))
    console.print(f"\n{sentence(run)}", style="bold")
    if run.variations:
        console.print("\nWhat the hit rate depends on: the stated stream, and one thing changed at a time")
        _print_variations(run, console)
        console.print(f"\n{dependence(run)}", style="bold")


def sentence(run: Run) -> str:
    """What the figures of one cache mean."""
    rates, (top, turn) = run.stated.hit_rates, (run.timed.row(form) for form in (AT_TOP, IN_TURN))
    lost = run.reusable[IN_TURN] - run.reusable[AT_END]
    cost = f"{lost} block{'s' * (lost != 1)} of {run.reuse_block_size} tokens"
    return (
        f"At the top of the system prompt the time makes the hit rate fall from {rates[IN_TURN]:.1%} to "
        f"{rates[AT_TOP]:.1%} and the first token come {top.median_ttft_ms / turn.median_ttft_ms:,.1f} times later; at "
        f"its end it costs {cost}; in the user's turn, none."
    )


def dependence(run: Run) -> str:
    """How far the variations move the two rates."""
    sharing = [v for v in run.variations if v.stream.turn_tokens == run.stated.stream.turn_tokens]
    others = [v for v in run.variations if v not in sharing]
    sentences = []
    if sharing:
        least, most = _range(AT_TOP, sharing)
        sentences.append(
            f"With the time at the top the rate is little more than the share of requests that share a second or "
            f"reread their own turns: {least:.1%} to {most:.1%} here."
        )
    if others:
        least, most = _range(IN_TURN, others)
        sentences.append(
            f"With it in the user's turn the rate depends on how long the turns are: {least:.1%} to {most:.1%} here."
        )
    return " ".join(sentences)


def _range(form: str, variations: list[StreamRates]) -> tuple[float, float]:
    rates = [rates.hit_rates[form] for rates in variations]
    return min(rates), max(rates)


def _print_variations(run: Run, console: Console) -> None:
    table = plain_table(["", f"hit rate\n{AT_TOP}", f"\n{IN_TURN}"], ["same\nsecond", "later\nturns", "turn,\ntokens"])
    for index, rates in enumerate((run.stated, *run.variations)):
        stream = rates.stream
        bars = (f"{bar(rates.hit_rates[form], 12)} {rates.hit_rates[form]:>6.1%}" for form in (AT_TOP, IN_TURN))
        figures = (f"{stream.same_second:.0%}", f"{stream.later_turns:.0%}", f"{stream.turn_tokens:,}")
        table.add_row("changed" if index else "as stated", *bars, *figures)
    console.print(table)


def _print_stream(rates: StreamRates, console: Console) -> None:
    stream = rates.stream
    console.print(
        f"\nHit rate: {DEFINITION}; caches and scheduler only, no model. The stated stream (seed {stream.seed}): "
        f"{stream.requests} requests. {stream.num_new} begin a conversation, {SECONDS_BETWEEN} seconds apart; "
        f"{stream.num_same_second} more ({stream.same_second:.0%}) come in the same second as one of these, when that "
        f"one has its first token; {stream.num_later_turns} ({stream.later_turns:.0%}) are the next turn of an earlier "
        f"conversation, which keeps the system prompt it began with. A turn is {stream.turn_tokens} tokens (and the "
        f"time, where it stands there), an answer is {ANSWER!r}. "
        f"Production traffic in the report that this follows fell from about 89 % to about 3 %; in {stream.requests} "
        f"requests, one that hits at the top is about {SYSTEM_TOKENS / rates.mean_prompt_tokens / stream.requests:.1%}."
    )


def panels(result: Result) -> list[Panel]:
    """The figures as charts."""
    caches = {NAMES[run.cache]: run for run in result.runs}

    def series(value):  # type: ignore[no-untyped-def]
        return {name: [value(run, form) for form in FORMS] for name, run in caches.items()}

    return [
        Panel(
            f"reusable blocks, of {BLOCKS}", list(FORMS), series(lambda run, form: run.reusable[form]), float(BLOCKS)
        ),
        Panel("hit rate, %", list(FORMS), series(lambda run, form: 100 * run.stated.hit_rates[form]), 100.0),
        Panel("median TTFT, ms", list(FORMS), series(lambda run, form: run.timed.row(form).median_ttft_ms)),
    ]
