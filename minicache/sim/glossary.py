"""The words of the field that the sentences use, and what each means: whatever explains them takes it from here."""

GLOSSARY: dict[str, str] = {
    "KV": "keys and values: what the model computes of a token once, and reads again for every later token",
    "prefill": "computing the KV of a prompt, many tokens in a step",
    "decode": "generating an answer, a token a step",
    "hash chain": "vLLM's prefix cache, which finds a full block by a hash of its tokens and the hash before it, and "
    "so of all that comes before",
    "radix tree": "SGLang's prefix cache, in which prompts are paths that share nodes as far as their tokens agree",
    "publish": "to let lookups find a block, or a node of the tree, from now on",
    "hit": "what a lookup found in the cache, in tokens: their KV need not be computed",
    "cached": "of a block: a lookup can find it and nobody uses it; it is kept until its room is needed",
    "evict": "to forget what a cached block holds, so that another request can have the block",
    "null block": "block b0, which fills the empty places of block tables and is never handed out",
    "preempted": "made to give its blocks back and wait again, because no block was free for a running request",
    "lpm": "longest prefix match: a queue policy that admits the request first of which most is cached",
    "lru": "least recently used: an eviction strategy, by which what was not used for longest goes first",
    "lfu": "least frequently used: an eviction strategy, by which the node with the fewest hits goes first",
    "modelled": "of a time: it comes from a formula over what a step computes, not from a clock",
}
