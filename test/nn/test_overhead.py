"""How much a model asks of PyTorch beside the work itself: calls of its operations, and waits of the host for values."""

from collections import Counter
from contextlib import nullcontext

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch_geometric.data import Batch, Data

from torch_gic import GICConv, VIGMMPool, receptive_fields
from torch_gic.kernels.library import REFERENCES


class Calls(TorchDispatchMode):
    """Counts what reaches the dispatcher."""

    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.counts[str(func)] += 1
        return func(*args, **(kwargs or {}))


@pytest.fixture
def waits(monkeypatch):
    """The names of the methods by which the host looked at values of tensors."""
    found = []

    def counted(name):
        method = getattr(torch.Tensor, name)

        def look(tensor):
            found.append(name)
            return method(tensor)

        return look

    for name in ("item", "tolist", "__bool__", "__int__", "__float__", "__index__"):
        monkeypatch.setattr(torch.Tensor, name, counted(name))
    return found


def paths():
    graphs = []
    for size in range(12, 20):
        nodes = torch.arange(size - 1)
        edges = torch.stack([nodes, nodes + 1])
        graphs.append(Data(x=torch.randn(size, 16), edge_index=torch.cat([edges, edges.flip(0)], dim=1)))
    return Batch.from_data_list(graphs)


def test_two_convolutions_and_a_pooling(waits):
    data = paths()
    fields = receptive_fields(data.edge_index, num_nodes=data.num_nodes)
    first, second, pool = GICConv(16, 32), GICConv(32, 32), VIGMMPool(32, 0.5)

    def convolve():
        x = first(data.x, data.edge_index, fields=fields).relu()
        return second(x, data.edge_index, fields=fields).relu()

    pool(convolve(), data.edge_index, None, data.batch)  # the kernels are there
    waits.clear()
    with torch.no_grad(), Calls() as calls:
        x = convolve()
    assert not waits
    assert calls.counts.total() <= 80, calls.counts
    with torch.no_grad(), Calls() as pooled:
        pool(x, data.edge_index, None, data.batch)
    assert len(waits) <= 2, waits
    assert calls.counts.total() + pooled.counts.total() <= 150


def test_one_component_computes_no_distances(monkeypatch):
    """Its responsibility is one, whatever the features are: nothing asks how far they are from a mean."""
    data = paths()
    fields = receptive_fields(data.edge_index, num_nodes=data.num_nodes)
    monkeypatch.setattr("torch_gic.encoding.posterior.component_distance", None)
    for components, computes in ((1, False), (2, True)):
        mu = torch.zeros(1, components, 16)
        operands = data.x, mu, torch.ones_like(mu), torch.zeros(1, components), fields.weight, fields.index[0], fields.rowptr
        with pytest.raises(TypeError) if computes else nullcontext():
            REFERENCES["gaussian_encode"](*operands)
