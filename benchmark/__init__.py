"""Benchmarks, each one command: `python -m benchmark.conv --help`."""
