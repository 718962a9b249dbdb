"""The kernels of these tests run interpreted, on a CPU. Triton reads this when it is imported, which only they do."""

import os

os.environ["TRITON_INTERPRET"] = "1"
