"""What can be known of launches without a device: nothing waits for it, and where a kernel fails, the reference runs."""

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from torch_gic import Fields, GaussianAggregation, GICConv, backend_info
from torch_gic.coarsening import merge, move_nodes, node_volume, structural_rank, undirected_graph
from torch_gic.coarsening.segments import UNSEEN
from torch_gic.kernels import library

pytest.importorskip("triton")
from benchmark.gpu.compile import encode
from torch_gic.kernels.triton import gpu

ROOT = Path(__file__).parents[2]
# Operations whose result, or the size of it, has to come from the device before the program goes on.
WAITING = ("_local_scalar_dense", "nonzero", "unique", "bincount", "masked_select", "equal", "is_nonzero")


class NoWaiting(TorchDispatchMode):
    def __enter__(self):
        # Not an operation: on a GPU it copies all values to the host.
        self.tolist = mock.patch.object(torch.Tensor, "tolist", side_effect=AssertionError("tolist waits for the device"))
        self.tolist.start()
        return super().__enter__()

    def __exit__(self, *error):
        self.tolist.stop()
        return super().__exit__(*error)

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        name = function.overloadpacket.__name__
        assert not name.startswith(WAITING), f"{name} waits for the device"
        if name == "index":
            assert not any(i is not None and i.dtype == torch.bool for i in arguments[1]), "a mask waits for the device"
        if name == "repeat_interleave":
            assert (keywords or {}).get("output_size") is not None, "repeat_interleave waits for the device"
        return function(*arguments, **(keywords or {}))


def test_no_launch_waits_for_the_device():
    """With tensors that have no values, all that is decided on the host has to be decided without them."""
    names = [launch[0].__name__ for launch in encode(torch.float32, 8)]
    assert names == ["_encode", "_mixture", "_logit_gradients", "_feature_gradients", "_segment_sum", "_segment_sum"]
    one = [launch[0].__name__ for launch in encode(torch.float32, 8, components=1)]
    assert one == names[:5]  # no distances
    with FakeTensorMode(), pytest.raises(DataDependentOutputException):  # so it would be seen
        torch.empty(3, device="cuda").max().item()


@pytest.mark.parametrize("is_aggregation", [False, True])
def test_no_layer_waits_for_the_device(is_aggregation):
    x = torch.randn(6, 4, requires_grad=True)
    node = torch.tensor([0, 0, 1, 3, 3, 5])
    index = torch.stack([torch.arange(6), node])
    fields = Fields.from_pair(index, torch.rand(6, 2), (6, 6))
    layer = GaussianAggregation(4, 3) if is_aggregation else GICConv(4, 3, num_scales=2, num_components=3)
    with NoWaiting():
        out = layer(x, node, dim_size=6) if is_aggregation else layer(x, index, fields=fields)
        out.square().sum().backward()
    assert x.grad is not None
    with NoWaiting(), pytest.raises(AssertionError, match="waits for the device"):
        GICConv(4, 3)(x, index)  # which computes the fields: how many there are is known only then


def test_ranks_and_volumes_do_not_wait_for_the_device():
    edge_index, batch = torch.tensor([[0, 1, 3], [1, 2, 4]]), torch.tensor([0, 0, 0, 1, 1, 1])
    graph = undirected_graph(edge_index, torch.ones(3), batch, 2)
    with NoWaiting():
        volume = node_volume(graph, batch, 2)
        assert structural_rank(graph, volume, batch).numel() == 6


def large_graph(num_nodes=600):
    """More than get a program of their own: a ring whose weights all differ, of which 60 clusters are wanted."""
    node = torch.arange(num_nodes)
    weight = 1 + torch.rand(num_nodes, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    graph = undirected_graph(torch.stack([node, (node + 1) % num_nodes]), weight, torch.zeros_like(node), 1)
    return graph, graph.degree, node, torch.tensor([0, num_nodes]), torch.tensor([0, num_nodes // 10])


def test_moving_in_a_large_graph_seldom_waits_for_the_device():
    arguments = large_graph()
    with NoWaiting():
        moved = move_nodes(*arguments, torch.arange(600) % 60, UNSEEN)
    assert moved.unique().numel() == 60


def test_merging_in_a_large_graph_seldom_waits_for_the_device(monkeypatch):
    """Once before the first round, and once behind the last."""
    arguments, waits, rounds, join = large_graph(), [], [], merge._join
    monkeypatch.setattr(merge, "_join", lambda *settings: rounds.append(1) or join(*settings))
    monkeypatch.setattr(torch.Tensor, "__int__", lambda value: waits.append(1) or round(float(value)))
    with mock.patch(f"{__name__}.WAITING", WAITING[1:]), NoWaiting():
        cluster = merge.merge_clusters(*arguments)
    assert len(rounds) == UNSEEN * (len(waits) - 1) > UNSEEN
    assert cluster.unique().numel() == 60


def test_launches_are_on_the_device_of_the_tensors(monkeypatch):
    devices, grids = [], []

    class Tensor:
        is_cuda, device = True, torch.device("cuda", 3)

    class Kernel:
        def __getitem__(self, grid):
            grids.append(grid)
            return lambda *arguments, **constants: None

    monkeypatch.setattr(torch.cuda, "device", lambda device: devices.append(device) or nullcontext())
    gpu.launch(Kernel(), (2, 3), Tensor())
    gpu.launch(Kernel(), (2, 0), Tensor())
    assert devices == [torch.device("cuda", 3)]
    assert grids == [(2, 3)]


def test_registered_for_gpus():
    assert backend_info().gpu == "Triton"
    assert library.has_kernel("gaussian_encode", "CUDA")
    assert library.has_kernel("gaussian_encode_backward", "CUDA")
    assert backend_info().ops["gaussian_encode"].endswith("Triton on GPUs")


def run(program, **environment):
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | environment
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)


def test_no_triton(tmp_path):
    (tmp_path / "triton.py").write_text("raise ImportError('no Triton on this machine')\n")
    program = "import torch_gic; info = torch_gic.backend_info(); print(info.gpu, info.gpu_reason, info, sep='\\n')"
    done = run(program, PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["reference", "Triton did not load (no Triton on this machine)"]
    assert "GPU kernels: reference\n  because: Triton did not load" in done.stdout


def test_nothing_imports_the_gpu_kernels_before_they_are_needed():
    program = "import sys, torch, torch_gic; torch_gic.GICConv(3, 4)(torch.randn(3, 3), torch.tensor([[0, 1], [1, 2]]))"
    done = run(program + "; assert not any(name.startswith('torch_gic.kernels.triton') for name in sys.modules)")
    assert done.returncode == 0, done.stderr


def test_gpu_kernels_on_the_cpu_need_the_interpreter(monkeypatch):
    monkeypatch.setenv("TORCH_GIC_KERNELS", "triton")
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    with pytest.raises(ValueError, match="Expected TRITON_INTERPRET=1 beside TORCH_GIC_KERNELS=triton"):
        library.load_kernels.__wrapped__()  # without what it remembers
