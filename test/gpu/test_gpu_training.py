"""A whole training step through the GPU kernels, in Triton's interpreter, beside the same step on the CPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("triton")

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
import torch
import torch.nn.functional as F
from torch_geometric.data import Batch
from torch_gic import GIC, backend_info
from conftest import random_graph

coarsening, dtype, file = sys.argv[1], getattr(torch, sys.argv[2]), sys.argv[3]
data = Batch.from_data_list([random_graph(n, n, channels=3, seed=n, dtype=torch.float32) for n in (5, 8, 1, 12)])
torch.manual_seed(0)
settings = {"soft": {"pool_kwargs": {"affinity": "laplacian"}}, "hard": {}}[coarsening]
model = GIC(3, 2, "C(4)-P(0.4)-C(4)-P-FC(16)", num_scales=2, num_components=3, **settings).to(dtype)
out = model(data.x.to(dtype), data.edge_index, data.edge_weight.to(dtype), data.batch)
loss = F.cross_entropy(out, torch.tensor([0, 1, 1, 0]))
loss.backward()
gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
torch.save({"cpu": backend_info().cpu, "loss": loss.detach(), "out": out.detach(), **gradients}, file)
"""


def step(file, coarsening, dtype, kernels):
    environment = os.environ | {
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'test'}",
        "TORCH_GIC_KERNELS": kernels,
        "TRITON_INTERPRET": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, coarsening, dtype, str(file)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return torch.load(file)


@pytest.mark.parametrize(
    ("coarsening", "dtype", "on_cpu", "tolerance"),
    [
        ("hard", "float64", "float64", 1e-9),  # a responsibility near 1 leaves few digits of what is missing to 1
        ("hard", "float32", "float64", 1e-5),  # of the same numbers: in float32, the CPU's step is off by as much itself
        ("soft", "bfloat16", "bfloat16", 2e-2),
    ],
)
def test_a_training_step_equals_that_on_the_cpu(coarsening, dtype, on_cpu, tolerance, tmp_path):
    ours = step(tmp_path / "gpu.pt", coarsening, dtype, "triton")
    plain = step(tmp_path / "cpu.pt", coarsening, on_cpu, "auto")
    assert ours.pop("cpu") == "Triton's interpreter"
    assert plain.pop("cpu") != "Triton's interpreter"
    assert ours.keys() == plain.keys()
    for name, value in plain.items():
        assert value is not None, name
        # Small gradients, such as those of biases before a normalisation, are sums of terms that cancel and are as large as
        # the largest gradients (0.4): in float32 the CPU's are off by as much.
        scale = max(float(value.abs().max()), 3e-2)
        assert float((ours[name] - value).abs().max()) < tolerance * scale, name
    assert sum(float(value.abs().max()) > 1e-6 for value in plain.values()) > len(plain) / 2
