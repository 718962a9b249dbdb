"""Kernels, each written twice: as a specification in plain torch, and in Triton.

    reference.py         the specifications, one query, head and key at a time
    layout.py            a batch as the tensors that kernels read: where its sequences lie, which program computes what
    launch.py            the constants that a kernel is compiled for, and the checks before it runs
    store_kv.py          writes new keys and values to the paged cache
    paged_attention.py   ragged queries over a block table: prompts, chunks and decodes in one launch
    paged_decode.py      one query of few, long sequences: the context is split between programs
    merge_splits.py      combines the results of the splits
    triton_attention.py  the kernels as an attention backend
    support.py           whether the kernels can run on this machine
    compiled.py          compiles the kernels for GPUs that this machine need not have
    bench.py             how fast they are on this machine's GPU

The kernels import triton, this package does not: import them where they are used. Under TRITON_INTERPRET=1, set before
triton is imported, they run on a CPU, slowly, for tests.
"""
