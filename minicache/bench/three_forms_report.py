"""The three-forms experiment as a person reads it."""

from rich.console import Console

from minicache.bench.charts import Panel
from minicache.bench.support_bot import QUESTION
from minicache.bench.tables import NAMES, bar, rows_table
from minicache.bench.three_forms import FORMS, ID_AT_END, ID_AT_START, PROMPT_TOKENS, STABLE
from minicache.bench.three_forms_result import Arm, Result


def print_report(result: Result, console: Console) -> None:
    for arm in result.runs:
        _print_arm(arm, console)
    _print_control(result.control, console)
    _print_verdict(result, console)


def print_header(model: str, prompt_tokens: int, console: Console) -> None:
    quick = f" (--quick: a tenth of the full length, {PROMPT_TOKENS:,})" if prompt_tokens < PROMPT_TOKENS else ""
    console.print(
        f"The same support bot is asked the same question in three forms, by {model}. Its system prompt never changes, "
        f"except for a request id: nowhere (stable), in the first line (id at start), or in the last (id at end). "
        f"The stable form's prompt is {prompt_tokens:,} tokens{quick}."
    )


def _print_arm(arm: Arm, console: Console) -> None:
    console.print(f"\n{NAMES[arm.cache]}, block size {arm.block_size}", style="bold")
    console.print(rows_table(arm.rows))
    console.print()
    for row in arm.rows:
        last = row.answers[-1]
        new = row.prompt_tokens - last.cached_tokens
        line = f"Prefill batch, #new-seq: 1, #new-token: {new}, #cached-token: {last.cached_tokens}"
        console.print(f"{row.form:<11}  {line}", soft_wrap=True)
    console.print()
    slowest = max(row.median_ttft_ms for row in arm.rows)
    for row in arm.rows:
        reused, prompt, waited = row.median_cached_tokens, row.prompt_tokens, row.median_ttft_ms
        console.print(f"{row.form:<11}  reused {bar(reused / prompt)} {reused:>5,} of {prompt:,}", soft_wrap=True)
        console.print(f"{'':<11}  waited {bar(waited / slowest)} {waited:>5,.0f} ms", soft_wrap=True)
    console.print(f"\n{sentence(arm)}", style="bold")


def sentence(arm: Arm) -> str:
    """What the figures of one cache mean."""
    stable, start, end = map(arm.row, (STABLE, ID_AT_START, ID_AT_END))
    moved, gone = (start.median_ttft_ms / row.median_ttft_ms for row in (end, stable))
    return (
        f"With an id in the first line {start.median_cached_tokens:,} of {start.prompt_tokens:,} tokens are reused; "
        f"with the id in the last line {end.median_cached_tokens:,} are, and the first token comes {moved:,.1f} times "
        f"sooner; with no id it comes {gone:,.1f} times sooner."
    )


def _print_control(control: Arm, console: Console) -> None:
    requests = sum(len(row.answers) for row in control.rows)
    console.print(f"\n{NAMES['none']}: the same prompts, each distinct one once ({requests} requests)", style="bold")
    console.print(rows_table(control.rows))


def _print_verdict(result: Result, console: Console) -> None:
    answer = result.control.row(STABLE).answers[0]
    console.print(f"\n{result.conditions.model} is asked {QUESTION!r} and begins to answer: {answer.text!r}")
    console.print(f"outputs identical: {'yes' if result.outputs_identical else 'no'}", style="bold")
    for line in result.differences:
        console.print(f"  {line}", soft_wrap=True)
    console.print(str(result.conditions))


def panels(result: Result) -> list[Panel]:
    """The figures as charts; the control arm is one of the series."""
    arms = {NAMES[arm.cache]: [arm.row(form) for form in FORMS] for arm in (*result.runs, result.control)}
    longest = max(row.prompt_tokens for row in result.control.rows)
    cached = {name: [float(row.median_cached_tokens) for row in rows] for name, rows in arms.items()}
    waited = {name: [row.median_ttft_ms for row in rows] for name, rows in arms.items()}
    return [
        Panel(f"median cached tokens, prompts of up to {longest:,}", FORMS, cached, float(longest)),
        Panel("median TTFT, ms", FORMS, waited),
    ]
