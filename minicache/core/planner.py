"""How a step is planned: running requests first, then the head of the queue while the token budget and the room last.

The two engines differ in when they make room:

    vLLM      one request after the other:  look up, take blocks, publish; the next one can hit these blocks
    SGLang    all requests together:        look up and lock every match, then make room once, then take blocks

So under vLLM two equal prompts of one step share blocks, and under SGLang no newcomer evicts what the next one hits.
Sources: vLLM 0.33, `vllm/v1/core/sched/scheduler.py`; SGLang 0.5.23, `sglang/srt/managers/scheduler.py`,
`schedule_policy.py` (`PrefillAdder`) and `schedule_batch.py`.
"""

from minicache.core.output_reserve import RETRACT_DECODE_STEPS, remaining_output, whole_output
from minicache.core.prefix_cache import PrefixCache
from minicache.core.queues import Desk
from minicache.core.request import Request, RequestStatus
from minicache.core.scheduler_config import SchedulerConfig


def plan_step(desk: Desk, cache: PrefixCache, config: SchedulerConfig) -> None:
    """Plan one step through the verbs of `desk`, and allocate its blocks from `cache`."""
    if config.admission == "output_reserve":
        _plan_as_sglang(desk, cache, config)
    else:
        _plan_as_vllm(desk, cache, config)


def _num_missing(request: Request) -> int:
    """The number of tokens of a running request that have no KV yet."""
    return request.num_tokens - request.num_computed_tokens


# vLLM


def _plan_as_vllm(desk: Desk, cache: PrefixCache, config: SchedulerConfig) -> None:
    # The threshold keeps a long prompt from taking the whole budget; one request alone keeps nobody waiting.
    is_alone = len(desk.running) + len(desk.waiting) == 1
    longest = 0 if is_alone else config.long_prefill_token_threshold
    budget = _continue_running(desk, cache, config, longest)
    if not desk.num_preempted:  # a preemption has shown that there is no room
        _admit_one_by_one(desk, cache, config, longest, budget)


def _continue_running(desk: Desk, cache: PrefixCache, config: SchedulerConfig, longest: int) -> int:
    """Returns the rest of the token budget."""
    budget = config.max_num_batched_tokens
    for request in list(desk.running):
        if not budget:
            break
        if request.status is not RequestStatus.RUNNING:
            continue  # preempted in this step, to free blocks for a request before it
        count = _share(_num_missing(request), budget, longest)
        while not cache.allocate(request, None, count):
            victim = config.choose_victim(desk.running)
            budget += desk.preempt(victim, needed_by=request.id)
            if victim is request:
                break  # the requests after it may still fit, with the blocks that it gave up
        else:
            desk.compute(request, count)
            budget -= count
    return budget


def _admit_one_by_one(desk: Desk, cache: PrefixCache, config: SchedulerConfig, longest: int, budget: int) -> None:
    if desk.waiting:
        desk.sort_waiting()
    while desk.waiting and budget and len(desk.running) < config.max_num_seqs:
        request = desk.waiting[0]
        match = cache.lookup(request)
        missing = request.num_tokens - match.num_tokens
        count = _share(missing, budget, longest)
        needed = cache.demand(request, match, count if config.admission == "first_chunk" else missing)
        if desk.running:  # a request that runs alone always fits, so no request waits for ever
            needed += int(config.watermark * (cache.capacity + 1))
        if needed > cache.num_free or not cache.allocate(request, match, count):
            desk.refuse(request, needed)
            break  # no request overtakes the head of the queue
        desk.admit(request, match, count)
        desk.compute(request, count)
        budget -= count


def _share(missing: int, budget: int, longest: int) -> int:
    """The number of tokens to compute in this step, of the `missing` ones: at most `longest`, if that is not 0."""
    return min(missing, budget, longest or missing)


# SGLang

Shares = dict[Request, int]  # the number of tokens that each request computes in this step


def _plan_as_sglang(desk: Desk, cache: PrefixCache, config: SchedulerConfig) -> None:
    decoding, chunks, budget = _shares(desk, cache, config)
    while not _make_room(cache, decoding | chunks, _demand(cache, decoding | chunks)):
        _preempt_one(desk, cache, config, decoding | chunks)
        decoding, chunks, budget = _shares(desk, cache, config)
    if desk.num_preempted:
        desk.reserve.after_preemption(desk.running)
    elif decoding:
        desk.reserve.decay()
    # One block for each, even if its last block has room: SGLang over-estimates.
    _take_blocks(desk, cache, decoding, len(decoding))
    if not desk.num_preempted:
        _lock_newcomers(desk, cache, config, decoding, chunks, budget)
    _take_blocks(desk, cache, chunks, _room_for_prefill(cache, chunks))


def _shares(desk: Desk, cache: PrefixCache, config: SchedulerConfig) -> tuple[Shares, Shares, int]:
    """What the running requests compute: those that decode, then those whose prompt an earlier step has begun. The
    rest of the token budget comes third."""
    budget = config.max_num_batched_tokens
    decoding, chunks = Shares(), Shares()
    for request in desk.running:
        if budget and desk.is_decoding(request):
            decoding[request] = _num_missing(request)
            budget -= decoding[request]
    for request in desk.running:
        if budget > 0 and not desk.is_decoding(request):
            chunks[request] = _share(_num_missing(request), budget, config.long_prefill_token_threshold)
            budget -= _whole_blocks(cache, chunks[request])
    return decoding, chunks, budget


def _demand(cache: PrefixCache, shares: Shares) -> int:
    """The number of blocks that these running requests need beyond those that they hold."""
    return sum(cache.demand(request, None, count) for request, count in shares.items())


def _make_room(cache: PrefixCache, shares: Shares, num_blocks: int) -> bool:
    """Make `num_blocks` blocks free, in the name of the first request that needs a new one."""
    needing = (request for request, count in shares.items() if cache.demand(request, None, count))
    return cache.make_room(num_blocks, next(needing, None))


def _preempt_one(desk: Desk, cache: PrefixCache, config: SchedulerConfig, shares: Shares) -> None:
    """Preempt a request, and evict at once what the others need for their next `RETRACT_DECODE_STEPS` tokens."""
    desk.preempt(config.choose_victim(desk.running), needed_by=_first_without_room(cache, shares).id)
    cache.make_room(_blocks(cache, RETRACT_DECODE_STEPS * len(desk.running)))


def _first_without_room(cache: PrefixCache, shares: Shares) -> Request:
    """The first request whose blocks are not free, if each takes its blocks in turn."""
    free = cache.num_free
    for request, count in shares.items():
        free -= cache.demand(request, None, count)
        if free < 0:
            break
    return request


def _lock_newcomers(
    desk: Desk, cache: PrefixCache, config: SchedulerConfig, decoding: Shares, chunks: Shares, budget: int
) -> None:
    """Admit waiting requests, lock their matches and add their shares to `chunks`. They take their blocks afterwards,
    all together, so that room for one of them is never made at the expense of what the next one hits."""
    size = cache.block_size
    desk.is_full |= len(desk.running) >= config.max_num_seqs
    if not desk.waiting or (desk.is_full and not chunks):
        return
    desk.sort_waiting()
    # Slots, in tokens: those that the outputs of running requests will need, and those that `chunks` will take.
    promised = desk.reserve.tokens(list(decoding)) + sum(_promise(cache, *share) for share in chunks.items())
    while desk.waiting and not desk.is_full:
        room = cache.num_free * size - promised
        if budget <= 0 < room:
            break
        request = desk.waiting[0]
        match = cache.lookup(request)
        missing = request.num_tokens - match.num_tokens
        locked = cache.demand(request, match, 0) * size  # matched slots that no request holds yet
        needed = locked + missing + remaining_output(request) + size
        # A request that runs alone always fits, so no request waits for ever.
        if desk.running and needed >= room:
            desk.refuse(request, int(promised + needed) // size + 1)
            desk.is_full = True  # until a running request leaves
            break
        count = _chunk(cache, missing, budget, config.long_prefill_token_threshold)
        if not count and desk.running:
            break  # what is left of the budget is less than a block
        count = count or min(missing, budget)
        cache.allocate(request, match, 0)
        desk.admit(request, match, count)
        chunks[request] = count
        budget -= _whole_blocks(cache, count)
        promised += _promise(cache, request, count)
        desk.is_full = len(desk.running) >= config.max_num_seqs or promised >= cache.num_free * size


def _chunk(cache: PrefixCache, missing: int, budget: int, longest: int) -> int:
    """The number of tokens that a newcomer computes: all that are missing, or as many whole blocks as the budget
    has."""
    whole = missing if _whole_blocks(cache, missing) <= budget else budget // cache.block_size * cache.block_size
    return _share(whole, budget, longest)


def _promise(cache: PrefixCache, request: Request, count: int) -> int:
    """The number of slots kept for a request that computes `count` prompt tokens: whole blocks for these and one block
    more, and if they complete the prompt its whole output, even if the request was preempted in the middle of it."""
    output = whole_output(request) if count == _num_missing(request) else 0
    return _whole_blocks(cache, count) + cache.block_size + output


def _room_for_prefill(cache: PrefixCache, chunks: Shares) -> int:
    """The number of blocks that SGLang makes free before the prefill takes its blocks: with blocks of several tokens,
    one more for each request than their tokens need together."""
    spare = len(chunks) if cache.block_size > 1 else 0
    return _blocks(cache, sum(chunks.values())) + spare


def _take_blocks(desk: Desk, cache: PrefixCache, shares: Shares, num_blocks: int) -> None:
    """Make `num_blocks` blocks free, as far as possible, and let the requests compute their shares. They fit: the
    caller has checked."""
    _make_room(cache, shares, num_blocks)
    for request, count in shares.items():
        fits = cache.allocate(request, None, count)
        assert fits, f"request {request.id!r} was promised room for {count} tokens"
        desk.compute(request, count)


def _blocks(cache: PrefixCache, num_tokens: int) -> int:
    return -(-num_tokens // cache.block_size)


def _whole_blocks(cache: PrefixCache, num_tokens: int) -> int:
    """`num_tokens`, rounded up to whole blocks. SGLang counts a prompt so against budget and room."""
    return _blocks(cache, num_tokens) * cache.block_size
