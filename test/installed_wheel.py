"""An installed wheel where nothing can be compiled: `make test-wheel`. Not collected by pytest.

The kernels have to be those of the wheel, and a training step has to give what the PyTorch references give.
"""

import json
import os
import shutil
import subprocess
import sys

import torch

import torch_gic

STEP = """
import torch
from torch_gic import GICConv, VIGMMPool

torch.manual_seed(0)
ring = torch.stack([torch.arange(12), (torch.arange(12) + 1) % 12])
edge_index = torch.cat([ring, ring.flip(0)], dim=1)
x = torch.randn(12, 5)
conv, pool = GICConv(5, 8, num_scales=3, num_components=4), VIGMMPool(8, 0.5)
out = pool(conv(x, edge_index).relu(), edge_index)
out.x.square().sum().backward()
gradients = [parameter.grad.flatten() for parameter in (*conv.parameters(), *pool.parameters())]
print(out.select.cluster_index.tolist(), torch.cat([out.x.flatten(), *gradients]).tolist(), sep=";")
"""


def step(**environment):
    command = [sys.executable, "-I", "-c", STEP]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    clusters, numbers = map(json.loads, done.stdout.split(";"))
    return clusters, torch.tensor(numbers, dtype=torch.float64)


def main():
    info = torch_gic.backend_info()
    print(f"Python {sys.version.split()[0]}\n{info}")
    if "--with-compiler" not in sys.argv:  # in the container that builds wheels there is one
        assert all(shutil.which(name) is None for name in ("c++", "g++", "clang++", "cc", "gcc")), "there is a compiler"
    assert info.cpu == "compiled extension", info.cpu
    assert "site-packages" in torch_gic.__file__, torch_gic.__file__
    clusters, numbers = step()
    expected_clusters, expected = step(TORCH_GIC_KERNELS="reference")
    assert clusters == expected_clusters, (clusters, expected_clusters)
    torch.testing.assert_close(numbers, expected, rtol=1e-3, atol=1e-3)
    print(f"torch_gic {torch_gic.__version__}: {numbers.numel()} numbers of a training step agree with the references")


if __name__ == "__main__":
    main()
