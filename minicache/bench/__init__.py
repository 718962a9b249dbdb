"""Experiments and benchmarks: each is a function that returns what it measured, and a function that prints it."""
