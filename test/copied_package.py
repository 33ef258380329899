"""Copies of the package that are imported in a process of their own."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRAM = """
import json, torch, torch_gic
info = torch_gic.backend_info()
x = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
edges = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
torch.manual_seed(0)
cluster = torch_gic.VIGMMPool(3, 0.5)(x, edges).select.cluster_index.tolist()
print(json.dumps([info.cpu, info.reason, info.ops["coarsen"], cluster, str(info), torch_gic.__file__]))
"""
has_compiler = shutil.which(os.environ.get("CXX", "c++")) is not None
needs_compiler = pytest.mark.skipif(not has_compiler, reason="no C++ compiler here")


def run(folder, **environment):
    """What backend_info() and a small pooling say in a new process that imports torch_gic from `folder`."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"PYTHONPATH": str(folder)} | {name: str(value) for name, value in environment.items()},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert Path(result[-1]).is_relative_to(folder)
    return result


def copy_package(folder):
    """The Python of the package, set to compile without optimisation: faster, and what is optimised is tested elsewhere."""
    shutil.copytree(ROOT / "torch_gic", folder / "torch_gic", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    library = folder / "torch_gic" / "kernels" / "compile.py"
    library.write_text(library.read_text().replace('"-O3"', '"-O0"'))
