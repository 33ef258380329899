"""Benchmarks, each one command: `python -m benchmark.conv --help`."""

from importlib.util import find_spec

_missing = [name for name in ("filelock", "matplotlib", "scipy", "tqdm") if find_spec(name) is None]
if _missing:  # in words, also to those who only ask for --help
    raise SystemExit(f'Not installed: {", ".join(_missing)}. The benchmarks need: pip install ".[benchmark]"')
