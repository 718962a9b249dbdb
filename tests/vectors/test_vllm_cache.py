"""V1 to V11, V14 to V16, V20 to V27, V40 to V42, V48: what vLLM's cache finds, where blocks go, and which goes first.

Each test is a few requests driven by hand (`drivers.py`); `check()` runs after every call and the view is compared.
"""

from collections.abc import Iterator

from minicache.core import Adapter, Namespace, Scheduler
from tests.vectors.drivers import COMMON, Chain, Uncached, span
from tests.vectors.registry import story, vector


@story(
    {
        "V1": "prefill: whole blocks get a hash, the tail does not",
        "V1.2": "reuse of three whole blocks; only the tail is fresh",
        "V1.3": "freed blocks: those without a hash go to the head, the others to the tail, last block first",
        "V1.4": "blocks that no request holds are taken out of the middle of the queue again",
        "V1.5": "allocation takes blocks from the head of the queue and evicts them",
    }
)
def test_prefill_and_reuse() -> Iterator[str]:
    chain = Chain()
    r0 = chain.add(COMMON + [3] * 7)
    assert (r0.hit, r0.blocks) == (0, [1, 2, 3, 4])
    assert len(chain.cache.hashes(r0.request)) == 3
    assert chain.cached == {1, 2, 3}
    assert chain.refs(1, 2, 3, 4) == [1, 1, 1, 1]
    yield "V1"

    r1 = chain.add(COMMON + [3] * 5)
    assert (r1.hit, r1.adopted, r1.fresh) == (48, [1, 2, 3], [5])
    assert chain.refs(1, 2, 3, 4, 5) == [2, 2, 2, 1, 1]
    assert chain.queue == [6, 7, 8, 9, 10]
    yield "V1.2"

    chain.free(r0)
    assert chain.queue == [4, 6, 7, 8, 9, 10]
    chain.free(r1)
    assert chain.queue == [5, 4, 6, 7, 8, 9, 10, 3, 2, 1]
    yield "V1.3"

    r2 = chain.add(COMMON + [3] * 6)
    assert (r2.hit, r2.fresh) == (48, [5])
    assert chain.queue == [4, 6, 7, 8, 9, 10]
    chain.free(r2)
    yield "V1.4"

    r3 = chain.add([99] * 160)
    assert (r3.hit, r3.blocks) == (0, [5, 4, 6, 7, 8, 9, 10, 3, 2, 1])
    assert chain.queue == []
    assert chain.cache.pool.num_hashes == 10
    assert chain.hit([*COMMON, 3]) == 0
    yield "V1.5"


@vector("V1b", "the order in which requests end is the order of the queue")
def test_order_of_release() -> None:
    chain = Chain()
    r0, r1 = chain.add(COMMON + [3] * 7), chain.add(COMMON + [3] * 5)
    chain.free(r1)
    assert chain.queue == [5, 6, 7, 8, 9, 10]
    chain.free(r0)
    assert chain.queue == [4, 5, 6, 7, 8, 9, 10, 3, 2, 1]


@story(
    {
        "V2": "a cached prompt of whole blocks: its last block is computed again, into a copy",
        "V2.2": "copies count their references apart",
        "V2.3": "of two copies lookups find the one published first, even if no request holds it",
        "V2.4": "both copies stay findable when they are freed",
    }
)
def test_whole_prompt_hit() -> Iterator[str]:
    chain = Chain()
    r0, r1 = chain.add(COMMON), chain.add(COMMON)
    assert r0.blocks == [1, 2, 3]
    assert (r1.hit, r1.adopted, r1.fresh) == (32, [1, 2], [4])
    assert chain.cache.pool.num_hashes == 3
    assert chain.cache.pool.hashes[4] == chain.cache.pool.hashes[3]
    yield "V2"

    chain.free(r0)
    assert chain.queue == [5, 6, 7, 8, 9, 10, 3]
    assert chain.refs(1, 2, 3, 4) == [1, 1, 0, 1]
    yield "V2.2"

    assert chain.lookup([*COMMON, 7]).blocks == [1, 2, 3]
    yield "V2.3"

    chain.free(r1)
    assert chain.queue == [5, 6, 7, 8, 9, 10, 3, 4, 2, 1]
    yield "V2.4"


@vector("V3", "one token past the blocks: all of them are reused")
def test_one_past_the_boundary() -> None:
    chain = Chain()
    chain.add([*COMMON, 5])
    r1 = chain.add([*COMMON, 5])
    assert (r1.hit, r1.fresh) == (48, [5])


@story(
    {
        "V4": "a prompt shorter than a block leaves nothing in the cache; its block is handed out next",
        "V4.2": "a prompt of exactly one block never hits: its last token must be computed",
    }
)
def test_short_prompts() -> Iterator[str]:
    chain = Chain()
    short = chain.add(span(0, 15))
    assert chain.cache.hashes(short.request) == []
    chain.free(short)
    assert chain.cached == set()
    assert chain.queue == span(1, 11)
    yield "V4"

    chain = Chain()
    chain.add(span(0, 16))
    again = chain.add(span(0, 16))
    assert (again.hit, again.blocks) == (0, [2])
    assert chain.lookup(span(0, 16)).end == "too_short"
    yield "V4.2"


@story(
    {
        "V5": "eviction order: useless blocks, then the requests in order of release, each last block first",
        "V5.2": "a hit takes its blocks out of the queue, from any place",
    }
)
def test_eviction_order() -> Iterator[str]:
    chain = Chain()
    a, b = chain.add(span(0, 87)), chain.add(span(87, 135))
    assert a.blocks == [1, 2, 3, 4, 5, 6]
    assert b.blocks == [7, 8, 9]
    chain.free(a)
    assert chain.queue == [6, 10, 5, 4, 3, 2, 1]
    chain.free(b)
    assert chain.queue == [6, 10, 5, 4, 3, 2, 1, 9, 8, 7]
    yield "V5"

    c = chain.add(span(0, 35))
    assert (c.hit, c.adopted, c.fresh) == (32, [1, 2], [6])
    assert chain.queue == [10, 5, 4, 3, 9, 8, 7]
    yield "V5.2"


@vector("V6", "decoding: a block gets its hash with its last token, and the next token takes a block")
def test_decode_growth() -> None:
    chain = Chain()
    a = chain.add(span(0, 55))
    assert a.blocks == [1, 2, 3, 4]
    for length in range(56, 64):
        assert chain.decode(a.request)
        assert a.request.num_tokens == length
        assert chain.cached == {1, 2, 3}
    assert chain.decode(a.request)  # token 64
    assert chain.cached == {1, 2, 3, 4}
    assert a.blocks == [1, 2, 3, 4]
    assert chain.decode(a.request)  # token 65
    assert a.blocks == [1, 2, 3, 4, 5]
    assert chain.cached == {1, 2, 3, 4}


@story(
    {
        "V7": "chunked prefill: after a chunk exactly its whole blocks can be found",
        "V7.2": "the next chunk: one more block can be found",
    }
)
def test_chunked_prefill() -> Iterator[str]:
    chain = Chain(block_size=4)
    a = chain.add(span(0, 10), num_tokens=6)
    assert a.blocks == [1, 2]
    assert chain.cached == {1}
    assert chain.hit(span(0, 10)) == 4
    yield "V7"

    assert chain.chunk(a.request, 4)
    assert a.blocks == [1, 2, 3]
    assert chain.cached == {1, 2}
    assert chain.hit(span(0, 10)) == 8
    yield "V7.2"


@vector("V8", "an allocation that does not fit changes nothing, neither references nor the queue")
def test_failed_allocation_has_no_effect() -> None:
    chain = Chain()
    r0 = chain.add(COMMON)
    r1 = chain.add(COMMON * 2)
    assert (r1.hit, r1.fresh) == (48, [4, 5, 6])
    chain.free(r1)
    r2 = chain.add([7] * 32)
    assert r2.blocks == [7, 8]
    assert chain.queue == [9, 10, 6, 5, 4]

    r3 = chain.request(COMMON * 3)
    match = chain.cache.lookup(r3)
    assert (match.num_tokens, match.blocks) == (96, [1, 2, 3, 4, 5, 6])
    assert chain.cache.demand(r3, match, 48) == 6  # three fresh, three revived
    assert chain.cache.num_free == 5
    assert not chain.cache.allocate(r3, match, 48)
    assert chain.refs(1, 2, 3, 4, 5, 6) == [1, 1, 1, 0, 0, 0]
    assert chain.queue == [9, 10, 6, 5, 4]
    assert r3.block_table == []
    assert r0.blocks == [1, 2, 3]


@vector("V9", "reset: refused while a block is held; forgets every hash, keeps the order of the queue")
def test_reset() -> None:
    chain = Chain()
    r0 = chain.add(COMMON + [3] * 7)
    assert not chain.cache.reset()
    assert chain.hit([*COMMON, 3]) == 48
    chain.free(r0)
    assert chain.cache.reset()
    assert chain.cached == set()
    assert chain.queue == [4, 5, 6, 7, 8, 9, 10, 3, 2, 1]
    assert chain.hit([*COMMON, 3]) == 0


@vector("V10", "a preempted request finds its own blocks again, but they count as demand")
def test_preempt_and_resume() -> None:
    chain = Chain(num_blocks=6, block_size=4)
    a, b = chain.add(span(0, 8)), chain.add(span(100, 108))
    assert a.blocks == [1, 2]
    assert b.blocks == [3, 4]
    assert chain.decode(a.request)
    assert a.blocks == [1, 2, 5]
    assert not chain.decode(b.request)

    chain.free(b)  # all eight tokens were computed, so both blocks stay findable
    b.request.num_computed_tokens = 0
    assert chain.queue == [4, 3]

    match = chain.cache.lookup(b.request)
    assert (match.num_tokens, match.blocks) == (8, [3, 4])
    assert not chain.cache.allocate(b.request, match, 1)  # the ninth token needs a third block
    assert chain.queue == [4, 3]


@vector("V11", "usage counts held blocks; a cached block that no request holds is free")
def test_usage() -> None:
    chain = Chain(block_size=4)
    assert chain.cache.pool.usage == 0
    a = chain.add(span(0, 10))
    assert round(chain.cache.pool.usage, 9) == 0.3
    chain.free(a)
    assert chain.cached == {1, 2}
    assert chain.cache.pool.usage == 0


@vector("V14", "salt: requests with a different salt, no salt or an empty salt find nothing")
def test_salt() -> None:
    chain = Chain()
    chain.add(COMMON + [3] * 11, namespace=Namespace(salt="s1"))
    prompt = COMMON + [4] * 11
    hits = [chain.hit(prompt, namespace=Namespace(salt=salt)) for salt in ("s1", "s2", None, "")]
    assert hits == [48, 0, 0, 0]


@vector("V15", "adapter: name and path are the key; the same name with a different path finds nothing")
def test_adapter() -> None:
    """vLLM's integer id is not in the key, so an adapter has none here. A digest of the weights may be added."""
    chain = Chain()
    prompt = [*COMMON, 1]
    chain.add(prompt, namespace=Namespace(Adapter("n", "/p1")))
    adapters = [Adapter("n", "/p1"), Adapter("n", "/p2"), None]
    assert [chain.hit(prompt, namespace=Namespace(adapter)) for adapter in adapters] == [48, 0, 0]
    assert chain.hit(prompt, namespace=Namespace(Adapter("n", "/p1", digest="v2"))) == 0


@vector("V16", "prompt log-probabilities: the request reads nothing and publishes everything")
def test_prompt_logprobs() -> None:
    chain = Chain()
    scheduler = Scheduler(chain.cache)
    prompt = span(0, 49)
    first = chain.add(prompt, prompt_logprobs=0)
    assert (first.hit, first.blocks) == (0, [1, 2, 3, 4])
    skipped = chain.lookup(prompt, prompt_logprobs=0)
    assert (skipped.num_tokens, skipped.end) == (0, "skipped")
    assert chain.hit(prompt) == 48
    second = chain.add(prompt, prompt_logprobs=0)
    assert (second.hit, second.blocks) == (0, [5, 6, 7, 8])
    assert chain.cache.pool.copies()[chain.cache.pool.hashes[1]] == (1, 5)
    assert scheduler.recent_hit_rate.requests == 0  # a cache counts nothing: the scheduler does, at admission (V30)


@vector("V20", "lookup is pure: the order of the queue stays")
def test_lookup_is_pure() -> None:
    chain = Chain(num_blocks=6, block_size=4)
    chain.free(chain.add(span(0, 8)))
    assert chain.queue == [3, 4, 5, 2, 1]
    assert chain.hit(span(0, 9)) == 8
    assert chain.queue == [3, 4, 5, 2, 1]


@vector("V21", "hits that no request holds reduce the free blocks too")
def test_hits_consume_capacity() -> None:
    chain = Chain(num_blocks=4, block_size=4)
    chain.free(chain.add(span(0, 12)))
    assert chain.queue == [3, 2, 1]
    request = chain.request([*span(0, 12), 77])
    match = chain.cache.lookup(request)
    assert match.num_tokens == 12
    assert chain.cache.demand(request, match, 1) == 4
    assert not chain.cache.allocate(request, match, 1)
    assert chain.queue == [3, 2, 1]


@story(
    {
        "V22": "vLLM's documented example: three whole blocks and a partial one",
        "V22.2": "the partial block fills up and is published; the next token takes a block",
        "V22.3": "a prompt that shares two and a half blocks reuses two",
        "V22.4": "the queue after both have ended",
        "V22.5": "a third request reuses three blocks and evicts all others but two",
    }
)
def test_documented_example() -> Iterator[str]:
    chain = Chain(block_size=4)
    r0 = chain.add(span(0, 15))
    assert r0.blocks == [1, 2, 3, 4]
    assert chain.cached == {1, 2, 3}
    yield "V22"

    assert chain.decode(r0.request)
    assert chain.cached == {1, 2, 3, 4}
    assert r0.blocks == [1, 2, 3, 4]
    assert chain.decode(r0.request)
    assert r0.blocks == [1, 2, 3, 4, 5]
    yield "V22.2"

    r1 = chain.add(span(0, 10) + span(50, 54))
    assert (r1.hit, r1.adopted, r1.fresh) == (8, [1, 2], [6, 7])
    assert chain.queue == [8, 9, 10]
    yield "V22.3"

    chain.free(r0)
    assert chain.queue == [5, 8, 9, 10, 4, 3]
    chain.free(r1)
    assert chain.queue == [7, 5, 8, 9, 10, 4, 3, 6, 2, 1]
    yield "V22.4"

    r2 = chain.add(span(0, 12) + span(70, 87))
    assert (r2.hit, r2.adopted, r2.fresh) == (12, [1, 2, 3], [7, 5, 8, 9, 10])
    assert chain.queue == [4, 6]
    yield "V22.5"


@vector("V23", "two equal prompts in one step share blocks that neither has computed yet")
def test_same_step_sharing() -> None:
    chain = Chain(block_size=4)
    a = chain.admit(chain.request(span(0, 10)))
    assert a is not None
    assert a.blocks == [1, 2, 3]
    chain.cache.publish(a.request, 10)  # scheduled, not computed
    b = chain.admit(chain.request(span(0, 10)))
    assert b is not None
    assert (b.hit, b.adopted, b.fresh) == (8, [1, 2], [4])


@vector("V23", "two equal prompts in one step share blocks that neither has computed yet")
def test_what_was_never_computed_is_unpublished() -> None:
    """A deviation, on purpose: vLLM 0.33 would leave blocks 1 and 2 findable, in the queue's tail, although a request
    that is released before its step ran has left nothing in them."""
    chain = Chain(block_size=4)
    a = chain.admit(chain.request(span(0, 10)))
    assert a is not None
    chain.cache.publish(a.request, 10)
    assert chain.cached == {1, 2}
    chain.free(a)
    assert chain.cached == set()
    assert chain.hit(span(0, 10)) == 0
    assert chain.queue == [3, 2, 1, *span(4, 11)]


@vector("V25", "draft tokens get blocks and are never published")
def test_draft_tokens() -> None:
    chain = Chain(block_size=4)
    a = chain.add(span(0, 7))
    assert a.blocks == [1, 2]
    assert chain.cache.allocate(a.request, None, 4)  # one token that was not appended yet, three drafts
    assert a.blocks == [1, 2, 3]
    chain.cache.publish(a.request, 11)
    assert chain.cached == {1}


@vector("V26", "the end of a chain is evicted first, so its beginning can be resumed")
def test_resume_after_partial_eviction() -> None:
    chain = Chain(num_blocks=7, block_size=4)
    a = chain.add(span(0, 12))
    assert a.blocks == [1, 2, 3]
    chain.free(a)
    b = chain.add(span(50, 66))
    assert b.blocks == [4, 5, 6, 3]
    assert chain.queue == [2, 1]
    chain.free(b)
    assert chain.queue == [2, 1, 3, 6, 5, 4]
    c = chain.add(span(0, 13))
    assert (c.hit, c.adopted, c.fresh) == (8, [1, 2], [3, 6])
    assert chain.queue == [5, 4]


@vector("V27", "reuse refreshes recency: a request's blocks that were hit again are evicted later")
def test_reuse_makes_recent() -> None:
    chain = Chain(num_blocks=7, block_size=4)
    a, b = chain.add(span(0, 8)), chain.add(span(20, 28))
    chain.free(a)
    chain.free(b)
    assert chain.queue == [5, 6, 2, 1, 4, 3]
    a2 = chain.add(span(0, 9))
    assert (a2.hit, a2.fresh) == (8, [5])
    chain.free(a2)
    assert chain.queue == [5, 6, 4, 3, 2, 1]
    x = chain.add(span(60, 72))
    assert x.blocks == [5, 6, 4]
    assert chain.hit(span(0, 9)) == 8
    assert chain.hit(span(20, 29)) == 4


@vector("V40", "a block that is handed out again has lost its hash")
def test_stale_hash_is_cleared() -> None:
    chain = Chain(num_blocks=2)
    chain.free(chain.add(span(0, 16)))
    assert chain.cached == {1}
    b = chain.add(span(0, 15))
    assert (b.hit, b.blocks) == (0, [1])
    assert chain.cache.pool.blocks[1].hash is None
    assert chain.hit(span(0, 17)) == 0


@vector("V41", "hits are adopted before fresh blocks are taken, so no request evicts its own hits")
def test_hits_survive_their_own_allocation() -> None:
    chain = Chain(num_blocks=3)
    a, b = chain.add(span(0, 16)), chain.add(span(100, 116))
    assert a.blocks == [1]
    assert b.blocks == [2]
    chain.free(a)
    chain.free(b)
    assert chain.queue == [1, 2]  # the block that will be hit is the next to be evicted
    c = chain.add(span(0, 32))
    assert (c.hit, c.adopted, c.fresh) == (16, [1], [2])


@vector("V42", "without caching every freed block goes back to the head, first block first")
def test_caching_disabled() -> None:
    uncached = Uncached(num_blocks=5, block_size=4)
    a = uncached.add(span(0, 10))
    assert a.blocks == [1, 2, 3]
    uncached.free(a)
    assert uncached.queue == [3, 2, 1, 4]
    b = uncached.add(span(0, 16))
    assert (b.hit, b.blocks) == (0, [3, 2, 1, 4])
    assert uncached.admit(uncached.request(span(0, 4))) is None
    assert uncached.cache.pool.hashes == {}


@vector("V48", "demand counts fresh blocks, and matched blocks that no request holds")
def test_demand() -> None:
    chain = Chain(num_blocks=41, block_size=2)
    cached = chain.add(span(0, 20))
    request = chain.request(span(0, 20) + span(500, 520))
    match = chain.cache.lookup(request)
    assert len(match.blocks) == 10
    assert chain.cache.demand(request, match, 20) == 10  # a request holds the prefix, so it costs no block
    chain.free(cached)
    match = chain.cache.lookup(request)
    assert chain.cache.demand(request, match, 20) == 20  # ten revived, ten fresh
