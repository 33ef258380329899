import itertools

import pytest
import torch
from clusters import batch_of_graphs, cut_objective, settings, weighted
from torch_geometric.utils import cumsum

from torch_gic.coarsening import merge_clusters
from torch_gic.coarsening.merge_clusters import reference
from torch_gic.kernels.library import has_kernel, load_kernels


def merged(edges, num_nodes, num_clusters, weight=None):
    graph = weighted(edges, num_nodes, weight)
    return merge_clusters(*settings(graph, torch.zeros(num_nodes, dtype=torch.long)), torch.tensor([num_clusters])).tolist()


def partition(cluster):
    return {frozenset(i for i, c in enumerate(cluster) if c == value) for value in set(cluster)}


def test_heavy_edges_are_not_cut():
    path = [(0, 1), (1, 2), (2, 3)]
    assert partition(merged(path, 4, 2, [5.0, 1.0, 5.0])) == {frozenset({0, 1}), frozenset({2, 3})}
    assert partition(merged(path, 4, 2, [1.0, 5.0, 1.0])) != {frozenset({0, 1}), frozenset({2, 3})}


def test_parts_of_a_graph_are_clusters_if_there_are_as_many():
    edges = [(0, 1), (1, 2), (0, 2), (3, 4), (5, 6), (6, 7)]
    assert partition(merged(edges, 8, 3)) == {frozenset({0, 1, 2}), frozenset({3, 4}), frozenset({5, 6, 7})}


def test_parts_merge_if_there_are_more_of_them_than_clusters():
    assert sorted(map(len, partition(merged([], 8, 2)))) == [4, 4]
    assert sorted(map(len, partition(merged([], 7, 3)))) == [2, 2, 3]
    edges = [(0, 1), (1, 2), (0, 2), (3, 4), (5, 6)]
    assert partition(merged(edges, 7, 2)) == {frozenset({0, 1, 2}), frozenset({3, 4, 5, 6})}  # the lightest ones


def test_a_star_keeps_its_centre_with_as_many_leaves_as_it_has_to():
    cluster = merged([(0, i) for i in range(1, 9)], 9, 3)
    assert sorted(map(len, partition(cluster))) == [1, 1, 7]


def test_all_and_none():
    edges = [(0, 1), (1, 2), (2, 3)]
    assert sorted(merged(edges, 4, 4)) == [0, 1, 2, 3]
    assert merged(edges, 4, 1) == [0, 0, 0, 0]


def test_clusters_are_numbered_by_graph_and_rank():
    graph, batch, num_clusters = batch_of_graphs()
    arguments = settings(graph, batch)
    cluster, rank = merge_clusters(*arguments, num_clusters), arguments[4]
    offset = cumsum(num_clusters)
    assert torch.equal(torch.bucketize(cluster, offset, right=True) - 1, batch)
    lowest = torch.full((int(offset[-1]),), 10**6).scatter_reduce(0, cluster, rank, "amin")
    for begin, end in itertools.pairwise(offset):
        assert bool((lowest[begin:end].diff() > 0).all())


def test_better_than_chance():
    graph, batch, num_clusters = batch_of_graphs()
    arguments = settings(graph, batch)
    cluster = merge_clusters(*arguments, num_clusters)
    shuffled = cluster.clone()
    generator = torch.Generator().manual_seed(0)
    for g in range(num_clusters.numel()):
        members = (batch == g).nonzero().view(-1)
        shuffled[members] = cluster[members[torch.randperm(members.numel(), generator=generator)]]
    assert cut_objective(graph, arguments[3], cluster) < 0.8 * cut_objective(graph, arguments[3], shuffled)


@pytest.mark.parametrize("ratio", [0.1, 0.25, 0.5, 0.9])
def test_kernel_equals_reference(ratio):
    load_kernels()
    if not has_kernel("merge_clusters", "CPU"):
        pytest.skip("no compiler")
    for unit in (True, False):  # many ties, and none
        graph, batch, _ = batch_of_graphs(unit=unit)
        num_clusters = (ratio * torch.bincount(batch)).ceil().long()
        arguments, offset = settings(graph, batch), cumsum(num_clusters)
        expected = reference(*arguments, offset)
        assert torch.equal(merge_clusters(*arguments, num_clusters), expected)


def test_opcheck():
    graph, batch, num_clusters = batch_of_graphs()
    offset = cumsum(num_clusters)
    arguments = (*settings(graph, batch), offset)
    torch.library.opcheck(torch.ops.torch_gic.merge_clusters, arguments)


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (1, torch.tensor([9, 0]), "edge to stay inside a graph"),
        (0, torch.tensor([1, 0]), "'row' to be sorted"),
        (2, torch.ones(2), "'weight' to hold float64"),
        (3, torch.tensor([1.0, torch.nan], dtype=torch.float64), "'vertex_weight' to be positive and finite .got nan"),
        (3, torch.tensor([1.0, 0.0], dtype=torch.float64), "'vertex_weight' to be positive and finite .got 0"),
        (5, torch.tensor([0, 1]), "'ptr' to lead from 0 to 2"),
        (6, torch.tensor([0, 3]), "1 to 2 clusters for the 2 vertices of graph 0 .got 3"),
    ],
)
def test_bad_operands(position, value, message):
    load_kernels()
    if not has_kernel("merge_clusters", "CPU"):
        pytest.skip("no compiler")
    arguments = [*settings(weighted([(0, 1)], 2), torch.zeros(2, dtype=torch.long)), torch.tensor([0, 1])]
    arguments[position] = value
    with pytest.raises(RuntimeError, match=message):
        torch.ops.torch_gic.merge_clusters(*arguments)


def test_boundaries_beyond_the_vertices():
    load_kernels()
    if not has_kernel("merge_clusters", "CPU"):
        pytest.skip("no compiler")
    arguments = settings(weighted([(0, 1)], 2), torch.zeros(2, dtype=torch.long))[:-1]
    with pytest.raises(RuntimeError, match="'ptr' to be sorted"):
        torch.ops.torch_gic.merge_clusters(*arguments, torch.tensor([0, 10**6, 2]), torch.tensor([0, 1, 2]))
