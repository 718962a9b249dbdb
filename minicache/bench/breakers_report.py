"""The breakers experiment as a person reads it."""

from rich.console import Console
from rich.padding import Padding

from minicache.bench.breakers_result import Result, Run
from minicache.bench.charts import Panel
from minicache.bench.tables import NAMES, bar
from minicache.bench.three_forms_result import Row


def print_header(model: str, requests: int, console: Console) -> None:
    console.print(
        f"Six habits that break a prefix in silence, each in a support bot's prompt for {model}, and the same prompt "
        f"repaired: {requests} requests of each, of which the first fills the cache and is not counted."
    )


def print_report(result: Result, console: Console) -> None:
    for run in result.runs:
        console.print(f"\n{NAMES[run.cache]}, block size {run.block_size}: median cached tokens and TTFT", style="bold")
        for case in run.cases:
            console.print(f"\n{case.name} → {case.repair}", soft_wrap=True)
            for row in (case.broken, case.repaired):
                console.print(_line(row), soft_wrap=True)
            console.print(Padding(case.why, (0, 0, 0, 2)))
        console.print(f"\n{sentence(run)}", style="bold")
    console.print(str(result.conditions))


def _line(row: Row) -> str:
    reused, prompt = row.median_cached_tokens, row.prompt_tokens
    return f"  {row.form:<8} {bar(reused / prompt)} {reused:>5,} of {prompt:,} {row.median_ttft_ms:>6,.0f} ms"


def sentence(run: Run) -> str:
    """What the figures of one cache mean."""
    most, least = max(run.cases, key=lambda case: case.gain), min(run.cases, key=lambda case: case.gain)
    broken, repaired = (_share([getattr(case, form) for case in run.cases]) for form in ("broken", "repaired"))
    fastest, slowest = max(case.speed_up for case in run.cases), min(case.speed_up for case in run.cases)
    return (
        f"Broken, the prompts reuse {broken:.0%} of their tokens; repaired, {repaired:.0%}, and the first token comes "
        f"{slowest:,.1f} to {fastest:,.1f} times sooner. A breaker costs what comes after it: {most.gain:,} tokens a "
        f"request for {most.name}, {least.gain:,} for {least.name}."
    )


def _share(rows: list[Row]) -> float:
    return sum(row.median_cached_tokens for row in rows) / sum(row.prompt_tokens for row in rows)


def panels(result: Result) -> list[Panel]:
    """The figures as charts: one a cache."""
    return [
        Panel(
            f"{NAMES[run.cache]}: median cached tokens a request, % of the prompt",
            [case.name for case in run.cases],
            {form: [100 * _share([getattr(case, form)]) for case in run.cases] for form in ("broken", "repaired")},
            100.0,
        )
        for run in result.runs
    ]
