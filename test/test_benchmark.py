"""Every benchmark runs as a user would run it: as a module of the checkout, on small settings."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(module, *arguments, fails=False):
    command = [sys.executable, "-m", f"benchmark.{module}", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "TQDM_DISABLE": "1"})
    assert (done.returncode != 0) == fails, done.stderr
    return done.stderr if fails else done.stdout


def test_conv(archive, tmp_path):
    settings = ["--datasets", "RINGS", "--data-url", archive, "--root", tmp_path / "data", "--output", tmp_path]
    settings += ["--parts", "layers", "kernels", "fields", "--rounds", 1, "--threads", 1, "--graphs", 5]
    out = run("conv", *settings)
    assert "RINGS: receptive fields, K = 7" in out
    assert (tmp_path / "conv.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    results = json.loads((tmp_path / "conv.json").read_text())
    assert {"GICConv", "filter product", "GINConv"} < set(results["layers/RINGS/1 x 38 to 64"])

    results["layers/RINGS/1 x 38 to 64"]["GINConv"] = 1234567.0
    (tmp_path / "conv.json").write_text(json.dumps(results))
    assert "1234567.0 ms" in run("conv", *settings)  # what was measured is not measured again
    assert "Delete it, or choose another --output" in run("conv", *settings, "--rounds", 2, fails=True)
    assert "--rounds to be at least 1" in run("conv", *settings, "--rounds", 0, fails=True)


def test_help():
    assert "--help" in run("conv", "--help")
