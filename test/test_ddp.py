"""More than one process: the gradient is that of one, and a lost process neither hangs the others nor loses the run."""

import os
import re
import signal
import subprocess
import sys
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from test_examples import EXAMPLES
from torch.nn.parallel import DistributedDataParallel
from torch_geometric.data import Batch, Data
from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE

from torch_gic import GIC

WORLD = 2
pytestmark = pytest.mark.skipif(not dist.is_available(), reason="needs torch.distributed")
needs_sampler = pytest.mark.skipif(not (WITH_TORCH_SPARSE or WITH_PYG_LIB), reason="needs torch-sparse or pyg-lib")


def graphs():
    generator = torch.Generator().manual_seed(0)
    parts = []
    for n in (6, 9, 5, 8, 7):
        edge_index = torch.randint(n, (2, 3 * n), generator=generator)
        x = torch.randn(n, 4, generator=generator, dtype=torch.float64)
        parts.append(Data(x=x, edge_index=edge_index, y=torch.tensor([n % 2])))
    return parts


def losses(level, model, chosen):
    """The sum of the loss over some of the graphs, or over some of the nodes of one graph, and its number of terms."""
    if level == "graph":
        batch = Batch.from_data_list([graphs()[i] for i in chosen])
        out, y = model(batch.x, batch.edge_index, batch=batch.batch, batch_size=len(chosen)), batch.y
    else:
        data = graphs()[1]
        order = torch.tensor([*chosen, *(i for i in range(9) if i not in chosen)])  # seeds first, as a loader puts them
        place = torch.empty_like(order)
        place[order] = torch.arange(9)
        out = model(data.x[order], place[data.edge_index], num_seeds=len(chosen))
        y = order[: len(chosen)] % 2
    return F.cross_entropy(out, y, reduction="sum"), y.numel()


def network(level):
    """Without the statistics of a batch, which are those of each process: in evaluation no layer takes them."""
    torch.manual_seed(0)
    architecture = "C(4)-P(0.5)-C(4)-P-FC(4)" if level == "graph" else "C(4)-C(4)-FC(4)"
    return GIC(4, 2, architecture, num_scales=2, num_components=2).double().eval()


def gradients_of_rank(rank, port, folder):
    """Two of the samples for the first process, three for the second."""
    sys.path.insert(0, str(EXAMPLES))
    from ddp import mean_over_processes

    torch.set_num_threads(1)
    store = dist.TCPStore("localhost", port, is_master=False)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=WORLD, timeout=timedelta(seconds=60))
    for level in ("graph", "node"):
        model = DistributedDataParallel(network(level))
        mean_over_processes(*losses(level, model, [[0, 3], [1, 2, 4]][rank])).backward()
        gradients = {name: parameter.grad for name, parameter in model.module.named_parameters()}
        torch.save(gradients, folder / f"{level}{rank}.pt")
        # Before the group, which would end with it otherwise, and may then wait for a thread of its own that waits for Python.
        del model
    dist.destroy_process_group()


def test_gradients_of_two_processes_are_those_of_one(tmp_path):
    meeting = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    torch.multiprocessing.spawn(gradients_of_rank, (meeting.port, tmp_path), nprocs=WORLD)
    for level in ("graph", "node"):
        model = network(level)
        loss, count = losses(level, model, [0, 3, 1, 2, 4])
        (loss / count).backward()
        for rank in range(WORLD):
            gradients = torch.load(tmp_path / f"{level}{rank}.pt", weights_only=True)
            for name, parameter in model.named_parameters():
                torch.testing.assert_close(gradients[name], parameter.grad, atol=1e-6, rtol=1e-6)
        assert max(float(parameter.grad.abs().max()) for parameter in model.parameters()) > 0.01


def start(folder, *arguments):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(WORLD)]
    command += [str(EXAMPLES / "ddp.py"), *map(str, arguments), "--checkpoint", str(folder / "run.pt")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )


@pytest.mark.parametrize("level", ["graph", pytest.param("node", marks=[needs_sampler, pytest.mark.slow])])
def test_killed_rank(level, tmp_path):
    settings = ["--level", level, "--size", 64, "--batch-size", 16]
    running = start(tmp_path, *settings, "--epochs", 100_000)
    try:
        lines = []
        while not any(line.startswith("epoch 2") for line in lines):
            line = running.stdout.readline()
            assert line, running.stderr.read()
            lines.append(line)
        victim = int(re.search(r"rank 1 of 2: process (\d+)", "".join(lines))[1])
        os.kill(victim, signal.SIGKILL)
        _, errors = running.communicate(timeout=60)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode != 0
    assert f"(pid: {victim})" in errors
    assert "SIGKILL" in errors

    values = torch.load(tmp_path / "run.pt", weights_only=True)["values"]
    assert values["epoch"] >= 1
    out, errors = start(tmp_path, *settings, "--epochs", values["epoch"] + 1).communicate(timeout=120)
    assert f"after epoch {values['epoch']}" in out, errors
    assert f"epoch {values['epoch'] + 1}: loss" in out
