"""The parts of VIGMMPool by themselves: any order of the batch, no weights, edge features."""

import pytest
import torch
from conftest import random_graph

from torch_gic import VIGMMPool
from torch_gic.nn import ClusterConnect, VIGMMSelect


def test_the_parts_stand_alone():
    """With PyG's own reduction between them, and without weights or a batch."""
    data = random_graph(20, 40, dtype=torch.float32)
    select = VIGMMSelect(5, 0.25)(data.x, data.edge_index)
    whole = VIGMMPool(5, 0.25)(data.x, data.edge_index)
    assert torch.equal(select.cluster_index, whole.select.cluster_index)
    connect = ClusterConnect()(select, data.edge_index)
    assert torch.equal(connect.edge_index, whole.edge_index)
    assert torch.equal(connect.edge_attr, whole.edge_weight)
    assert connect.batch is None
    with pytest.raises(ValueError, match=r"'x' to have shape \[num_nodes, 5\]"):
        VIGMMSelect(5)(data.x[:, :2], data.edge_index)
    with pytest.raises(ValueError, match="'edge_index' to hold nodes in"):
        VIGMMSelect(5)(data.x[:3], data.edge_index)


@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_edge_features_of_several_columns(reduce):
    data = random_graph(20, 40)
    select = VIGMMSelect(None, 0.25)(data.x, data.edge_index)
    features = torch.stack([data.edge_weight, torch.ones(80, dtype=torch.float64)], dim=1).requires_grad_()
    out = ClusterConnect(reduce=reduce)(select, data.edge_index, features)
    for edge, found in zip(out.edge_index.t(), out.edge_attr, strict=True):
        joined = (select.cluster_index[data.edge_index] == edge.unsqueeze(1)).all(0)
        torch.testing.assert_close(found, getattr(features[joined], reduce)(0))
    out.edge_attr.sum().backward()
    assert bool((features.grad > 0).all())
    for wrong, error in ((features[:3], ValueError), (features.unsqueeze(2), ValueError), (features.long(), TypeError)):
        with pytest.raises(error, match="'edge_attr' to"):
            ClusterConnect()(select, data.edge_index, wrong)
    with pytest.raises(ValueError, match="'reduce' to be one of"):
        ClusterConnect(reduce="max")


def test_a_batch_in_any_order():
    """The nodes of three graphs in turns."""
    data = random_graph(30, 60)
    batch = torch.arange(30) % 3
    edges = data.edge_index[:, batch[data.edge_index[0]] == batch[data.edge_index[1]]]
    layer = VIGMMPool(5, 0.3).double()
    torch.nn.init.normal_(layer.select.lin.weight, generator=torch.Generator().manual_seed(0))
    out = layer(data.x.requires_grad_(), edges, batch=batch)
    out.x.square().sum().backward()
    weight_grad, layer.select.lin.weight.grad = layer.select.lin.weight.grad, None
    order = torch.argsort(batch, stable=True)
    place = torch.empty_like(order).scatter_(0, order, torch.arange(30))
    expected = layer(data.x[order], place[edges], batch=batch[order])
    expected.x.square().sum().backward()
    assert torch.equal(out.select.cluster_index[order], expected.select.cluster_index)
    assert torch.equal(out.batch, expected.batch)
    torch.testing.assert_close(out.x, expected.x)
    torch.testing.assert_close(weight_grad, layer.select.lin.weight.grad)


def test_exported():
    """A program for any batch, in which numbers of clusters are not known beforehand."""
    pool = VIGMMPool(5, 0.5).eval()
    data, other = random_graph(12, 20, dtype=torch.float32), random_graph(12, 20, seed=1, dtype=torch.float32)

    class Pooled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.pool = pool

        def forward(self, x, edge_index, batch):
            return self.pool(x, edge_index, batch=batch).x

    with torch.no_grad():
        program = torch.export.export(Pooled(), (data.x, data.edge_index, torch.zeros(12, dtype=torch.long))).module()
        for graph in (data, other):
            found = program(graph.x, graph.edge_index, torch.zeros(12, dtype=torch.long))
            assert torch.equal(found, pool(graph.x, graph.edge_index).x)
