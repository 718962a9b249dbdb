"""What makes the engine fast on a CPU, apart from what is read first; each file gives its reason and its gain.

    attention.py  paged attention on torch's fused kernel, over keys that lie head by head
    products.py   matrix products by oneDNN, and rows multiplied a piece at a time

`minicache.engine.backends` puts them together as the backend "fast_cpu", the default on a CPU. Without it (backend
"torch") the answers are the same within rounding.
"""
