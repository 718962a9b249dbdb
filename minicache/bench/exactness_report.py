"""The exactness experiment as a person reads it."""

from rich.console import Console

from minicache.bench.exactness import Result
from minicache.bench.tables import plain_table


def print_report(result: Result, console: Console) -> None:
    table = plain_table(
        ["\nformat", "\nmode"],
        [
            "requests with\nother bits",
            "with another\ntoken",
            "largest\ndifference",
            "prefill, ms\n(cold)",
            "a token,\nms",
        ],
    )
    for arm in result.arms:
        table.add_row(
            arm.dtype,
            "exact" if arm.exact else "fast",
            f"{arm.different} of {arm.requests}",
            f"{arm.flipped} of {arm.requests}",
            f"{arm.largest_difference:.2g}",
            f"{arm.prefill_ms:,.1f}",
            f"{arm.token_ms:,.1f}",
        )
    console.print("The same prompts, cold and after a cache hit: are the logits the same, bit for bit?\n")
    console.print(table)
    console.print()
    console.print(sentence(result), style="bold")
    ways = {True: "several tiles at once", False: "tile by tile"}
    console.print("exact mode computes " + ", ".join(f"{dtype} {ways[s]}" for dtype, s in result.stacked.items()))
    console.print(str(result.conditions))


def sentence(result: Result) -> str:
    fast = {arm.dtype: arm for arm in result.arms if not arm.exact}
    exact = {arm.dtype: arm for arm in result.arms if arm.exact}
    bits = sum(arm.different for arm in exact.values())
    cost = exact["float32"].prefill_ms / fast["float32"].prefill_ms
    decode = exact["float32"].token_ms / fast["float32"].token_ms
    return (
        f"In fast mode a hit changes the bits of {fast['float32'].different} of {fast['float32'].requests} answers in "
        f"float32; in exact mode it changes {bits} in any format. In float32 exact mode takes {cost:.1f} times as long "
        f"to prefill and {decode:.1f} times as long a token."
    )
