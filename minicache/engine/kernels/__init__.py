"""Kernels, each written twice: the specification in plain torch, and fast.

    reference.py         the specifications, one query, head and key at a time
    layout.py            a batch as the tensors that kernels read: where its sequences lie, and who computes what
    launch.py            what a kernel is compiled for, and the checks before it runs
    store_kv.py          new keys and values into the paged cache
    paged_attention.py   ragged queries over a block table: prompts, chunks and decodes in one launch
    paged_decode.py      one query of few, long sequences: the context is split between programs
    merge_splits.py      what the splits of a context found, made one
    compiled.py          what a compiler makes of the kernels, for GPUs that need not be here
    bench.py             how fast they are on the GPU that is here

The kernels import triton, which this package does not: import them where they are used. Under TRITON_INTERPRET=1, set
before triton is imported, they run on a CPU, slowly, for tests.
"""
