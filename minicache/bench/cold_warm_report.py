"""The cold-warm experiment as a person reads it."""

from typing import cast

from rich.console import Console

from minicache.bench.charts import Panel
from minicache.bench.cold_warm import SYSTEM_TOKENS, Plan
from minicache.bench.cold_warm_result import COLD, NO_CACHE, WARM, Result, SpeedRow
from minicache.bench.tables import NAMES, bar, plain_table, ttft_cells
from minicache.bench.three_forms_result import Arm


def print_header(model: str, plan: Plan, console: Console) -> None:
    console.print(
        f"{model} answers with a system prompt of {plan.system_tokens:,} tokens and a new question each time: with an "
        f"empty cache (cold), with the system prompt in it (warm), and without a cache."
    )
    if plan.cut:
        console.print(
            f"{SYSTEM_TOKENS:,} tokens are the full length; the context of {model} is {plan.context:,} tokens, which "
            f"the question and the answer share."
        )


def print_report(result: Result, console: Console) -> None:
    for arm in result.runs:
        rows = _rows(arm, result.control)
        slowest = max(row.median_ttft_ms for row in rows.values())
        console.print(f"\n{NAMES[arm.cache]}, block size {arm.block_size}", style="bold")
        _print_table(rows, console)
        console.print()
        for form, row in rows.items():
            waited = row.median_ttft_ms
            console.print(f"{form:<9} waited {bar(waited / slowest)} {waited:>7,.0f} ms", soft_wrap=True)
        console.print(f"\n{sentence(arm, result.control)}", style="bold")
    console.print(
        "\nPrefill speed: prompt tokens computed for each second until the first token; a warm request computes so few "
        "that fixed costs decide. As seen: all prompt tokens, reused ones too, for each such second. Decode: "
        "tokens a second after the first."
    )
    console.print(f"outputs identical: {'yes' if result.outputs_identical else 'no'}", style="bold")
    for line in result.differences:
        console.print(f"  {line}", soft_wrap=True)
    console.print(str(result.conditions))


def _rows(*arms: Arm) -> dict[str, SpeedRow]:
    return {row.form: cast(SpeedRow, row) for arm in arms for row in arm.rows}


def _print_table(rows: dict[str, SpeedRow], console: Console) -> None:
    headings = ("prompt\ntokens", "cached", "TTFT, ms\nmedian", "min", "max")
    speeds = ("prefill\ntokens\nper s", "as seen\ntokens\nper s", "decode\ntokens\nper s")  # narrow: 80 columns
    table = plain_table([""], [*headings, *speeds])
    for form, row in rows.items():
        rates = (f"{value:,.0f}" for value in (row.prefill_rate, row.prompt_rate, row.decode_rate))
        table.add_row(form, f"{row.prompt_tokens:,}", f"{row.median_cached_tokens:,}", *ttft_cells(row), *rates)
    console.print(table)


def sentence(arm: Arm, control: Arm) -> str:
    """What the figures of one cache mean."""
    rows = _rows(arm, control)
    cold, warm, plain = rows[COLD], rows[WARM], rows[NO_CACHE]
    sooner, slower = cold.median_ttft_ms / warm.median_ttft_ms, cold.median_ttft_ms / plain.median_ttft_ms
    return (
        f"Warm, {warm.median_cached_tokens:,} of {warm.prompt_tokens:,} tokens are reused and the first token comes "
        f"{sooner:,.1f} times sooner than cold. Decoding, which a cache leaves as it is, ran at "
        f"{cold.decode_rate:,.0f} tokens a second cold and {warm.decode_rate:,.0f} warm. A cold cache took "
        f"{slower:.2f} times as long as none."
    )


def panels(result: Result) -> list[Panel]:
    """The figures as charts."""
    caches = {NAMES[arm.cache]: _rows(arm, result.control) for arm in result.runs}
    forms = [COLD, WARM, NO_CACHE]
    return [
        Panel(title, forms, {name: [getattr(rows[form], field) for form in forms] for name, rows in caches.items()})
        for title, field in (
            ("median TTFT, ms", "median_ttft_ms"),
            ("prefill speed, computed tokens a second", "prefill_rate"),
            ("decode speed, tokens a second", "decode_rate"),
        )
    ]
