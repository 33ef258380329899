"""Benchmarks, each one command: `python -m benchmark.conv --help`."""

import sys
from importlib.util import find_spec

_needed = ["filelock", "scipy", "tqdm"]
if not {"-h", "--help"} & set(sys.argv):  # pictures are drawn last: said now, not after hours
    _needed.append("matplotlib")
_missing = [name for name in _needed if find_spec(name) is None]
if _missing:
    raise SystemExit(f'Not installed: {", ".join(_missing)}. The benchmarks need: pip install ".[benchmark]"')
