"""minicache: a small, complete LLM serving engine whose subject is prefix caching."""

__version__ = "0.1.0"
