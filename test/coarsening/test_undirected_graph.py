import pytest
import torch
from clusters import batch_of_graphs
from conftest import random_graph
from torch_geometric.utils import cumsum

from torch_gic.coarsening import structural_rank, undirected_graph, vertex_volume
from torch_gic.coarsening.structural_rank import reference as rank_reference
from torch_gic.coarsening.undirected_graph import reference
from torch_gic.kernels.library import has_kernel, load_kernels


def test_graph_is_the_symmetric_part_in_units_of_its_heaviest_edge():
    data = random_graph(12, 20, directed=True)
    graph = undirected_graph(data.edge_index, data.edge_weight, torch.zeros(12, dtype=torch.long), 1)
    A = torch.zeros(12, 12, dtype=torch.float64)
    A.index_put_((data.edge_index[1], data.edge_index[0]), data.edge_weight, accumulate=True)
    dense = torch.zeros(12, 12, dtype=torch.float64).index_put((graph.row, graph.col), graph.weight)
    torch.testing.assert_close(dense, (A + A.t()) / 2 / data.edge_weight.max())
    torch.testing.assert_close(graph.degree, dense.sum(1))
    position = graph.row * 12 + graph.col
    assert bool((position.diff() > 0).all())


def test_weights_in_half_precision():
    data = random_graph(12, 20, directed=True)
    weight, batch = data.edge_weight.bfloat16(), torch.zeros(12, dtype=torch.long)
    graph, same = (undirected_graph(data.edge_index, w, batch, 1) for w in (weight, weight.double()))
    torch.testing.assert_close(graph.weight, same.weight)


def test_volume_of_a_vertex_without_an_edge_is_the_mean_weight():
    graph = undirected_graph(torch.tensor([[0, 1], [1, 2]]), torch.tensor([1.0, 3.0]), torch.tensor([0, 0, 0, 0, 1]), 2)
    volume = vertex_volume(graph, torch.tensor([0, 0, 0, 0, 1]), 2)
    torch.testing.assert_close(volume, torch.tensor([1 / 6, 4 / 6, 1 / 2, 1 / 3, 1.0], dtype=torch.float64))


def test_rank_follows_the_vertices_and_not_their_numbers():
    graph, batch, _ = batch_of_graphs(sizes=(40, 25))
    influence = torch.ones(65, dtype=torch.float64)
    order = torch.cat([torch.randperm(40), 40 + torch.randperm(25)])
    entries = torch.stack([graph.row, graph.col])
    rank, other = (
        structural_rank(undirected_graph(edges, graph.weight, batch, 2), influence, torch.tensor([0, 40, 65]))
        for edges in (entries, order[entries])
    )
    for members in (torch.arange(40), torch.arange(40, 65)):
        assert torch.equal(rank[members].sort().values, torch.arange(members.numel()))
    several = torch.bincount(graph.row, minlength=65) > 1  # vertices without an edge all look the same
    assert torch.equal(other[order][several], rank[several])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_kernels_equal_references(dtype):
    load_kernels()
    if not has_kernel("undirected_graph", "CPU"):
        pytest.skip("no compiler")
    generator = torch.Generator().manual_seed(0)
    for sizes in ((30, 1, 0, 12), (2,), (9000, 10)):
        size = torch.tensor(sizes)
        ptr, batch = cumsum(size), torch.repeat_interleave(torch.arange(len(sizes)), size)
        edge_index = torch.cat(
            [b + torch.randint(n, (2, 5 * n), generator=generator) for b, n in zip(ptr, sizes, strict=False) if n], 1
        )
        edge_index[0, :100] = 0  # a hub: many links among few vertices, or among many, are added up in different ways
        weight = torch.rand(edge_index.size(1), generator=generator, dtype=dtype) - 0.1  # some are not there
        weight[:3] = torch.tensor([1e-30, 1e30, 0])
        graph = undirected_graph(edge_index, weight.clamp(min=0), batch, len(sizes))
        for ours, expected in zip(graph, reference(edge_index, weight.clamp(min=0), batch, len(sizes)), strict=True):
            assert torch.equal(ours, expected)
        influence = torch.rand(batch.numel(), generator=generator, dtype=torch.float64).round(decimals=1) + 0.1
        expected = rank_reference(graph.row, graph.col, graph.weight, influence, ptr)
        assert torch.equal(structural_rank(graph, influence, ptr), expected)


def test_opcheck():
    graph, batch, _ = batch_of_graphs()
    edges = torch.stack([graph.row, graph.col])
    torch.library.opcheck(torch.ops.torch_gic.undirected_graph, (edges, graph.weight, batch, 6))
    ptr = cumsum(torch.bincount(batch, minlength=6))
    influence = torch.ones(batch.numel(), dtype=torch.float64)
    torch.library.opcheck(torch.ops.torch_gic.structural_rank, (graph.row, graph.col, graph.weight, influence, ptr))


def test_bad_operands():
    load_kernels()
    if not has_kernel("undirected_graph", "CPU"):
        pytest.skip("no compiler")
    batch = torch.zeros(2, dtype=torch.long)
    with pytest.raises(RuntimeError, match=r"'edge_index' to lie in \[0, 1\]"):
        undirected_graph(torch.tensor([[0], [2]]), torch.ones(1), batch, 1)
    with pytest.raises(RuntimeError, match=r"'batch' to lie in \[0, 0\]"):
        undirected_graph(torch.tensor([[0], [1]]), torch.ones(1), batch + 1, 1)
    with pytest.raises(RuntimeError, match="'edge_weight' to have size 1"):
        undirected_graph(torch.tensor([[0], [1]]), torch.ones(2), batch, 1)
