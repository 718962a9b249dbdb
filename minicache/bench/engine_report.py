"""The engine's benchmark as a person reads it."""

from rich.console import Console

from minicache.bench.engine_result import BATCH_OF_8, ONE_TOKEN, OURS, PREFILL, THEIRS, WARM, Result
from minicache.bench.tables import bar, plain_table


def print_report(result: Result, console: Console) -> None:
    _print_timings(result, console)
    cold, warm = (result.timings[name].median(OURS) for name in (PREFILL, WARM))
    console.print(
        f"warm: with all but {result.warm_tokens} of the {result.prompt_tokens:,} prompt tokens in the cache the "
        f"first token comes after {1000 * warm:,.0f} ms, {cold / warm:,.1f} times sooner than cold."
    )
    _print_shares(result, console)
    memory = result.memory
    console.print(
        f"\nmemory: {megabytes(memory.peak)} at the peak, the engine alone; of these {megabytes(memory.weights)} "
        f"weights; the KV pool takes {megabytes(memory.kv_pool)} when full, {memory.kv_per_token:,} bytes a token."
    )
    console.print(
        f"{result.model}, float32, cpu, block size {result.block_size}, {result.threads} threads, "
        f"load {result.load:.1f}; {result.seconds:.0f} s in all."
    )


def _print_timings(result: Result, console: Console) -> None:
    numbers = [f"{OURS}\nms", "\ntokens/s"]
    if result.compared_tokens:
        numbers += [f"{THEIRS}\nms", "times\nas fast", "\ngoal", "\nmet"]
    table = plain_table(["\nmedian"], numbers)
    for name, tokens in ((PREFILL, result.prompt_tokens), (ONE_TOKEN, 1), (BATCH_OF_8, 8)):
        timing, goal = result.timings[name], result.goal(name)
        ours = timing.median(OURS)
        cells = [f"{1000 * ours:,.1f}", f"{tokens / ours:,.1f}"]
        if timing.ratio is not None:
            cells += [f"{1000 * timing.median(THEIRS):,.1f}", f"{timing.ratio:.2f}"]
            cells += ["–" if goal is None else f"{goal:.2f}", {True: "yes", False: "no", None: "–"}[result.met(name)]]
        table.add_row(name, *cells)
    console.print(table)
    first, last = result.batch_contexts
    console.print(
        f"\nprefill: a cold prompt of {result.prompt_tokens:,} tokens, to its first token. one token: one more after "
        f"it. batch of 8: one more for each of 8 sequences with {first} to {last} tokens of context."
    )
    if result.compared_tokens:
        console.print(
            f"times as fast: the median of neighbours' ratios. Both chose the same token {result.equal_tokens:,} times "
            f"of {result.compared_tokens:,}."
        )
    if any(result.met(name) is False for name in result.timings):
        console.print(f"Goals are for 2 quiet cores; the load of this machine was {result.load:.1f}.")


def _print_shares(result: Result, console: Console) -> None:
    machine, work, shares = result.machine, result.work, result.shares
    rows, inner, columns = machine.product_shape
    console.print(
        f"\nThis machine, in the same minutes: a product [{rows}, {inner}] × [{inner}, {columns}] at "
        f"{machine.flops_per_s / 1e9:,.0f} GFLOP/s, a copy at {machine.bytes_per_s / 1e9:,.1f} GB/s (read and written)."
    )
    for name, needs in (
        (PREFILL, f"{work.prefill_flops / 1e9:,.0f} GFLOP"),
        (ONE_TOKEN, f"{megabytes(work.one_token_bytes)} of weights and KV"),
        (BATCH_OF_8, f"{megabytes(work.batch_bytes)} of weights and KV"),
    ):
        rate = "the product's rate" if name == PREFILL else "the copy's rate"
        share = shares[name]
        console.print(f"{name:<10} {bar(min(1, share))} {share:4.0%} of {rate} ({needs})", soft_wrap=True)


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"
