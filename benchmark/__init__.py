"""Benchmarks by question: `python -m benchmark --help` lists them, each with `--help` and `--quick`."""

import sys
from importlib.util import find_spec

_needed = ["filelock", "joblib", "scipy", "sklearn", "statsmodels", "tabulate", "tqdm"]
if not {"-h", "--help"} & set(sys.argv):  # pictures are drawn last: said now, not after hours
    _needed.append("matplotlib")
_missing = [name for name in _needed if find_spec(name) is None]
if _missing:
    raise SystemExit(f'Not installed: {", ".join(_missing)}. The benchmarks need: pip install ".[benchmark]"')
