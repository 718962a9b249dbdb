"""Experiments and benchmarks: one file each, with its settings, its run, and its result as a table and a chart."""
