"""All benchmarks: lists them, or runs a piece of each with --quick.

speed.conv: how long does a layer take?        speed.epoch: how long does an epoch take, and where does the time go?
speed.scale: does it work on large graphs?     pooling: how good and how fast is the coarsening?
pooling.parts: parts of bounded size           graphs: which network classifies graphs best? (molecules too)
nodes: which convolution classifies nodes best?    worth: does coarsening pay?
nodes.units: does a layer work whatever the unit of its features is?
paper: the tables of the paper                 report: writes RESULTS.md from the files of runs
gpu.compile: do the GPU kernels compile?       gpu.cost: what do they cost at least, on paper?

Each is a command, such as `python -m benchmark.graphs --help`, and has --quick.
"""

import subprocess
import sys
import time
from importlib.util import find_spec

from .common.command import add_data_arguments, make_parser, print_table

WITH_DATA = ("speed.conv", "speed.epoch", "pooling", "pooling.parts", "graphs", "nodes", "nodes.units", "worth", "paper")
OTHERS = ("speed.scale", "report", "gpu.cost", "gpu.compile")
NEEDS = {"pooling.parts": "pymetis", "gpu.compile": "triton"}


def main():
    parser = make_parser("", __doc__)
    parser.prog = "python -m benchmark"
    parser.add_argument("--quick", action="store_true", help="run a piece of everything, in less than ten minutes")
    parser.add_argument("--only", nargs="+", choices=WITH_DATA + OTHERS, default=WITH_DATA + OTHERS, help="(default: all)")
    add_data_arguments(parser)
    args = parser.parse_args()
    if not args.quick:
        parser.print_help()
        return
    rows = []
    for name in args.only:
        if name in NEEDS and find_spec(NEEDS[name]) is None:
            rows.append([name, f"left out: it needs {NEEDS[name]}", ""])
            continue
        command = [sys.executable, "-m", f"benchmark.{name}", "--quick"]
        if name in WITH_DATA:
            command += ["--root", str(args.root), *(["--data-url", args.data_url] if args.data_url else [])]
        print(f"\n# {' '.join(command[1:])}", flush=True)
        start = time.perf_counter()
        code = subprocess.run(command).returncode
        rows.append([name, "done" if code == 0 else f"failed ({code})", f"{time.perf_counter() - start:.0f} s"])
    print_table("All benchmarks", ["", "", "time"], rows)
    if any(row[1].startswith("failed") for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
