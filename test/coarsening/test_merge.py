import itertools

import pytest
import torch
from clusters import batch_of_graphs, cut_objective, settings, weighted
from torch_geometric.utils import cumsum

from torch_gic.coarsening import UndirectedGraph, merge_clusters


def merged(edges, num_nodes, num_clusters, weight=None):
    graph = weighted(edges, num_nodes, weight)
    return merge_clusters(*settings(graph, torch.zeros(num_nodes, dtype=torch.long)), torch.tensor([0, num_clusters])).tolist()


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
    arguments, offset = settings(graph, batch), cumsum(num_clusters)
    cluster, rank = merge_clusters(*arguments, offset), arguments[2]
    assert torch.equal(torch.bucketize(cluster, offset, right=True) - 1, batch)
    lowest = torch.full((int(offset[-1]),), 10**6).scatter_reduce(0, cluster, rank, "amin")
    for begin, end in itertools.pairwise(offset):
        assert bool((lowest[begin:end].diff() > 0).all())


def test_better_than_chance():
    graph, batch, num_clusters = batch_of_graphs()
    arguments = settings(graph, batch)
    cluster = merge_clusters(*arguments, cumsum(num_clusters))
    shuffled = cluster.clone()
    generator = torch.Generator().manual_seed(0)
    for g in range(num_clusters.numel()):
        members = (batch == g).nonzero().view(-1)
        shuffled[members] = cluster[members[torch.randperm(members.numel(), generator=generator)]]
    assert cut_objective(graph, arguments[1], cluster) < 0.8 * cut_objective(graph, arguments[1], shuffled)


def test_ends_for_an_adjacency_that_is_not_symmetric():
    graph = UndirectedGraph(torch.arange(4), torch.tensor([1, 2, 0]), torch.tensor([3.0, 2.0, 1.0]).double())
    rank, ptr, offset = torch.zeros(3, dtype=torch.long), torch.tensor([0, 3]), torch.tensor([0, 1])
    with pytest.raises(ValueError, match="Expected a symmetric adjacency and different ranks"):
        merge_clusters(graph, torch.ones(3).double(), rank, ptr, offset)
