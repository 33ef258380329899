"""GIC on the nodes of large graphs: seeds of sampled batches, and all nodes layer by layer."""

import sys

import pytest
import torch
from conftest import random_graph
from torch_geometric.data import Data
from torch_geometric.loader import ClusterLoader, NeighborLoader
from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE

from torch_gic import GIC, ReceptiveFields, receptive_fields, walk_counts
from torch_gic.fields import trim_fields
from torch_gic.loader import ClusterData

needs_sampler = pytest.mark.skipif(not (WITH_TORCH_SPARSE or WITH_PYG_LIB), reason="needs torch-sparse or pyg-lib")


def network(architecture="C(6)-C(4)-FC(5)", **kwargs):
    torch.manual_seed(0)
    return GIC(5, 3, architecture, **{"num_scales": 3, "num_components": 2, "hidden_channels": 4} | kwargs).double()


def trained(model, data):
    """With statistics of the batch normalisation that are not those it starts with."""
    for _ in range(3):
        model(data.x, data.edge_index)
    return model.eval()


@pytest.mark.parametrize("batch_size", [1, 7, 100])
@pytest.mark.parametrize("architecture", ["C(6)-C(4)-FC(5)", "C(6)", "FC(5)"])
def test_inference_equals_forward(architecture, batch_size):
    data = random_graph(40, 120, directed=True)
    model = trained(network(architecture), data)
    expected = model(data.x, data.edge_index, data.edge_weight)
    out = model.train().inference(data.x, data.edge_index, data.edge_weight, batch_size=batch_size)
    torch.testing.assert_close(out, expected)
    assert model.training
    assert not out.requires_grad


def test_inference_that_fails_leaves_the_model_in_training():
    data, model = random_graph(), network().train()
    with pytest.raises(ValueError, match="'x' to have shape"):
        model.inference(data.x[:, :2], data.edge_index)
    assert all(module.training for module in model.modules())


def test_inference_takes_fields_in_any_order():
    data = ReceptiveFields(3, max_neighbors=6)(random_graph(40, 120))
    model = trained(network(max_neighbors=6), data)
    expected = model(data.x, data.edge_index, data.edge_weight)
    index, weight = data.fields["index"], data.fields["weight"]
    order = torch.randperm(index.size(1))
    for fields in (data.fields, (index[:, order], weight[order])):
        torch.testing.assert_close(model.inference(data.x, data.edge_index, fields=fields, batch_size=7), expected)


def test_inference_of_a_graph_without_nodes():
    assert network().inference(torch.empty(0, 5, dtype=torch.float64), torch.empty(2, 0, dtype=torch.long)).shape == (0, 3)


@pytest.mark.parametrize("num_seeds", [1, 5, 40])
def test_seeds_get_the_output_they_have_among_all(num_seeds):
    data = random_graph(40, 60, directed=True)
    model = trained(network(), data)
    expected = model(data.x, data.edge_index, data.edge_weight)[:num_seeds]
    torch.testing.assert_close(model(data.x, data.edge_index, data.edge_weight, num_seeds=num_seeds), expected)


def test_only_what_seeds_depend_on_is_computed():
    path = torch.tensor([[1, 2, 3, 4, 5], [0, 1, 2, 3, 4]])  # towards node 0, the seed
    alone = trim_fields(receptive_fields(path), num_seeds=1, num_layers=3)
    assert [(part.num_sources, part.num_nodes) for part in alone] == [(4, 3), (3, 2), (2, 1)]
    steps = trim_fields(receptive_fields(path, add_self_loops=True), num_seeds=1, num_layers=3)
    assert [(part.num_sources, part.num_nodes) for part in steps] == [(4, 3), (3, 2), (2, 1)]
    expected = [[[0, 0], [1, 0], [1, 1], [2, 1]], [[0, 0], [1, 0]]]
    assert [sorted(part.index.t().tolist()) for part in steps[1:]] == expected
    assert [part.rowptr.tolist() for part in steps[1:]] == [[0, 2, 4], [0, 2]]


def test_errors_of_node_level():
    data = random_graph()
    graph_level = network("C(4)-P")
    with pytest.raises(ValueError, match=r"a network without any P, .* for 'inference'"):
        graph_level.inference(data.x, data.edge_index)
    with pytest.raises(ValueError, match=r"a network without any P, .* for 'num_seeds'"):
        graph_level(data.x, data.edge_index, num_seeds=2)
    with pytest.raises(ValueError, match=r"'num_seeds' to be at most the 12 nodes \(got 13\)"):
        network()(data.x, data.edge_index, num_seeds=13)
    with pytest.raises(ValueError, match=r"'num_seeds' to be at least 1 \(got 0\)"):
        network()(data.x, data.edge_index, num_seeds=0)
    with pytest.raises(ValueError, match=r"'batch_size' to be at least 1 \(got 0\)"):
        network().inference(data.x, data.edge_index, batch_size=0)


def field_graph(data, **settings):
    """The fields as edges with features, which is what loaders sample."""
    fields = ReceptiveFields(3, **settings)(data).fields
    numbers = torch.arange(data.num_nodes)
    return Data(x=data.x, y=numbers, edge_index=fields["index"], edge_attr=fields["weight"])


@needs_sampler
def test_complete_samples_of_fields_give_the_output_of_the_whole_graph():
    data = random_graph(40, 60)
    model = trained(network(), data)
    expected = model(data.x, data.edge_index)
    data.edge_weight = None
    loader = NeighborLoader(field_graph(data), num_neighbors=[-1, -1], batch_size=6)
    for batch in loader:
        out = model(batch.x, None, fields=(batch.edge_index, batch.edge_attr), num_seeds=batch.batch_size)
        torch.testing.assert_close(out, expected[batch.y[: batch.batch_size]])


@needs_sampler
def test_samples_hold_nothing_but_what_was_sampled():
    """Nodes outside of the sample, and edges that were not drawn, do not enter the output of a seed."""
    data = random_graph(40, 200, directed=True)
    model = trained(network(), data)
    sampled = Data(x=data.x, edge_index=data.edge_index, number=torch.arange(40))
    batch = next(iter(NeighborLoader(sampled, num_neighbors=[2, 2], batch_size=3)))
    assert batch.num_nodes < 40
    out = model(batch.x, batch.edge_index, num_seeds=batch.batch_size)

    alone = model(data.x[batch.number], batch.edge_index, num_seeds=batch.batch_size)
    torch.testing.assert_close(out, alone)
    x = torch.full_like(data.x, torch.nan)  # outside of the sample
    x[batch.number] = data.x[batch.number]
    edges = batch.number[batch.edge_index]
    everything = model(x, edges)[batch.number[: batch.batch_size]]
    torch.testing.assert_close(out, everything)


@needs_sampler
def test_normalisers_of_a_sample():
    """A node whose edges were not sampled counts as one without edges, unless its walks were counted in the whole graph."""
    star = torch.stack([torch.arange(1, 9), torch.zeros(8, dtype=torch.long)])
    edge_index = torch.cat([star, star.flip(0)], dim=1)
    sizes = {"num_scales": 2, "add_self_loops": True}
    data = Data(x=torch.randn(9, 5), edge_index=edge_index, walk_count=walk_counts(edge_index, **sizes))
    assert data.walk_count[0].tolist() == [9, 9 + 8 * 2]  # nine ways into the hub; of two steps, one stays or comes by a leaf
    batch = next(iter(NeighborLoader(data, num_neighbors=[-1], input_nodes=torch.tensor([1]))))

    def weight(edge_index, member, node, **counts):
        fields = receptive_fields(edge_index, **sizes, **counts)
        return fields.weight[(fields.index[0] == member) & (fields.index[1] == node)].flatten().tolist()

    assert weight(batch.edge_index, 1, 0) == [1, 2]  # the hub in the field of the seed
    whole = weight(edge_index, 0, 1)
    assert whole == pytest.approx([1 / 9, 2 / 25])
    assert weight(batch.edge_index, 1, 0, walk_count=batch.walk_count) == pytest.approx(whole)


@needs_sampler
@pytest.mark.parametrize("add_self_loops", [False, True])
@pytest.mark.parametrize("max_neighbors", [None, 4])
def test_fields_of_seeds_are_those_of_the_whole_graph(max_neighbors, add_self_loops):
    """With all edges that walks to a seed may take in the sample, the strongest members are the same ones too."""
    data = random_graph(60, 300, directed=True)
    sizes = {"num_scales": 2, "add_self_loops": add_self_loops}
    data.walk_count = walk_counts(data.edge_index, data.edge_weight, num_nodes=60, **sizes)
    data.number = torch.arange(60)

    def as_dict(data, nodes, names, **counts):
        bounds = {**sizes, "max_neighbors": max_neighbors, **counts}
        fields = receptive_fields(data.edge_index, data.edge_weight, num_nodes=data.num_nodes, **bounds)
        pairs = names[fields.index].t().tolist()
        return {tuple(pair): w.tolist() for pair, w in zip(pairs, fields.weight, strict=True) if pair[1] in nodes}

    for batch in NeighborLoader(data, num_neighbors=[-1, -1], batch_size=4):
        seeds = batch.number[: batch.batch_size].tolist()
        whole = as_dict(data, seeds, data.number)
        sampled = as_dict(batch, seeds, batch.number, walk_count=batch.walk_count)
        assert sampled.keys() == whole.keys()
        assert all(sampled[pair] == pytest.approx(whole[pair]) for pair in whole)


@pytest.mark.parametrize("add_self_loops", [False, True])
def test_walk_counts_are_the_normalisers_of_fields(odd, add_self_loops, monkeypatch):
    monkeypatch.setattr(sys.modules["torch_gic.fields.walk_counts"], "EDGES_PER_PIECE", 3)  # as of a graph of many edges
    A = torch.zeros(odd.num_nodes, odd.num_nodes, dtype=torch.float64)
    A.index_put_((odd.edge_index[1], odd.edge_index[0]), odd.edge_weight, accumulate=True)
    A += add_self_loops * torch.eye(odd.num_nodes)
    sizes = {"num_nodes": odd.num_nodes, "num_scales": 3, "add_self_loops": add_self_loops}
    counts = walk_counts(odd.edge_index, odd.edge_weight, **sizes)
    for k in range(3):
        torch.testing.assert_close(counts[:, k], torch.linalg.matrix_power(A, k + 1).sum(dim=1))
    fields = receptive_fields(odd.edge_index, odd.edge_weight, **sizes)
    again = receptive_fields(odd.edge_index, odd.edge_weight, **sizes, walk_count=counts)
    assert torch.equal(again.index, fields.index)
    torch.testing.assert_close(again.weight, fields.weight)


def test_errors_of_walk_counts():
    with pytest.raises(ValueError, match="'walk_count' to be finite and non-negative"):
        receptive_fields(torch.tensor([[0], [2]]), num_scales=2, walk_count=-torch.ones(3, 2))
    with pytest.raises(ValueError, match=r"'walk_count' to have shape \[3, 2\] \(got \[3, 1\]\)"):
        receptive_fields(torch.tensor([[0], [2]]), num_scales=2, walk_count=torch.ones(3, 1))


def test_cluster_loader():
    data = random_graph(60, 150)
    data.edge_weight = None
    model = trained(network(), data)
    batches = list(ClusterLoader(ClusterData(data, num_parts=6), batch_size=2))
    assert sum(batch.num_nodes for batch in batches) == 60
    for batch in batches:
        assert model(batch.x, batch.edge_index).isfinite().all()
