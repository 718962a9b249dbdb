"""Kernels, each written twice: the specification in plain torch, and fast."""
