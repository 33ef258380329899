"""The kernels compile for real GPUs. In a process of its own: Triton either compiles or interprets."""

import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("triton")
from benchmark.gpu.compile import CHANNELS, COMPONENTS, TARGETS, has_atomics

ROOT = Path(__file__).parents[2]


def test_every_kernel_compiles_for_every_target(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "benchmark.gpu.compile", "--output", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr  # no spills, no atomics
    rows = [line for line in done.stdout.splitlines() if line.count(" / ") == 2 * len(TARGETS)]
    encoding = {"encode", "mixture", "logit_gradients", "feature_gradients", "segment_sum"}
    coarsening = {"multiply", "sum", "assign", "choose", "merge", "move"}
    assert {row.split(",")[0] for row in rows} == encoding | coarsening | {"extend"}
    for channels, components in product(CHANNELS, (1, COMPONENTS)):
        assert any(row.startswith(f"encode, fp32, d = {channels}, C = {components}") for row in rows)
    for target in TARGETS:
        for kind in ("amdgcn", "hsaco") if target.startswith("gfx") else ("ptx", "cubin"):
            files = list(tmp_path.glob(f"*.{target}.{kind}"))
            assert len(files) == len(rows)
            assert all(file.stat().st_size > 0 for file in files)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ({"ptx": "\t@%p1 red.global.add.f32 [%rd1], %f1;"}, True),
        ({"ptx": "\tatom.global.gpu.add.f32 %f2, [%rd1], %f1;"}, True),
        ({"ptx": "\tadd.f32 %f1, %f2, %f3; // redundant"}, False),
        ({"amdgcn": "\tglobal_atomic_add_f32 v0, v1, s[0:1]"}, True),
        ({"amdgcn": "\tv_add_f32 v0, v1, v2"}, False),
    ],
)
def test_atomics_are_seen(code, expected):
    assert has_atomics(SimpleNamespace(asm=code)) == expected
