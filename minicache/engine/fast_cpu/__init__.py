"""What makes the engine fast on a CPU, apart from the files that are read first.

    attention.py  paged attention on torch's fused kernel, over caches that lie head by head
    products.py   matrix products by oneDNN, and rows multiplied a piece at a time

`minicache.engine.backends` combines them as the backend "fast_cpu". Backend "torch" gives the same answers within
rounding. The gain of each part is what a step costs without it:

    part replaced                            prompt of 2,999    one token    8 sequences
    none                                     8.0 s              67 ms        86 ms
    FastCpuAttention by TorchAttention       37.7 s             73 ms        107 ms
    caches head by head by block by block    8.9 s              110 ms       139 ms
    OneDnnLinear by Linear                   8.4 s              59 ms        135 ms
    the weight laid out for few rows         –                  –            107 ms
    SlicedRows by Rows                       8.4 s              –            –

Processor time of one step, the least of three: SmolLM2-135M in float32, blocks of 16, one token more after 1,000 tokens
of context or after 64 to 95 tokens in each of 8 sequences; one thread of an Intel Xeon, torch 2.13, November 2026. MKL,
which `Linear` uses, is the faster one here for a single row; on AMD's cores it takes 1.3 times as long as oneDNN.
"""
