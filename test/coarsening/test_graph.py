import torch
from clusters import batch_of_graphs
from conftest import random_graph

from torch_gic.coarsening import node_volume, structural_rank, undirected_graph


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


def test_volume_of_a_node_without_an_edge_is_the_mean_weight():
    graph = undirected_graph(torch.tensor([[0, 1], [1, 2]]), torch.tensor([1.0, 3.0]), torch.tensor([0, 0, 0, 0, 1]), 2)
    volume = node_volume(graph, torch.tensor([0, 0, 0, 0, 1]), 2)
    torch.testing.assert_close(volume, torch.tensor([1 / 6, 4 / 6, 1 / 2, 1 / 3, 1.0], dtype=torch.float64))


def test_rank_follows_the_nodes_and_not_their_numbers():
    graph, batch, _ = batch_of_graphs(sizes=(40, 25))
    influence = torch.ones(65, dtype=torch.float64)
    order = torch.cat([torch.randperm(40), 40 + torch.randperm(25)])
    entries = torch.stack([graph.row, graph.col])
    rank, other = (
        structural_rank(undirected_graph(edges, graph.weight, batch, 2), influence, batch)
        for edges in (entries, order[entries])
    )
    for members in (torch.arange(40), torch.arange(40, 65)):
        assert torch.equal(rank[members].sort().values, torch.arange(members.numel()))
    several = torch.bincount(graph.row, minlength=65) > 1  # nodes without an edge all look the same
    assert torch.equal(other[order][several], rank[several])
