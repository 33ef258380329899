import itertools

import pytest
import torch
from clusters import batch_of_graphs, cut_objective, settings, start, weighted
from torch_geometric.utils import cumsum

from torch_gic.coarsening import merge_clusters, move_nodes


def test_a_node_goes_where_it_belongs():
    clique = [*itertools.combinations(range(4), 2), *itertools.combinations(range(4, 8), 2), (3, 4)]
    graph, batch = weighted(clique, 8), torch.zeros(8, dtype=torch.long)
    wrong = torch.tensor([0, 0, 0, 1, 1, 1, 1, 1])
    moved = move_nodes(*settings(graph, batch), torch.tensor([0, 2]), wrong, 1)
    assert moved.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize("num_clusters", [2, None])
@pytest.mark.parametrize("seed", range(5))
def test_no_iteration_raises_the_cut(seed, num_clusters):
    graph, batch, counts = batch_of_graphs(seed=seed)
    if num_clusters is not None:
        counts = torch.bincount(batch, minlength=counts.numel()).clamp(max=num_clusters)
    influence = 0.5 + torch.rand(batch.numel(), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    arguments, offset = settings(graph, batch, influence), cumsum(counts)
    cluster = start(batch, counts, seed)
    history = [cut_objective(graph, arguments[1], cluster)]
    for _ in range(40):
        cluster = move_nodes(*arguments, offset, cluster, 1)
        assert torch.equal(cluster.unique(), torch.arange(int(offset[-1])))  # none is emptied
        history.append(cut_objective(graph, arguments[1], cluster))
    assert all(after <= before + 1e-12 for before, after in itertools.pairwise(history))
    assert history[-1] < 0.9 * history[0]
    assert torch.equal(move_nodes(*arguments, offset, start(batch, counts, seed), 40), cluster)


def test_in_the_end_no_move_to_a_neighbour_is_left_that_lowers_the_cut():
    graph, batch, counts = batch_of_graphs(sizes=(25,))
    arguments, offset = settings(graph, batch), cumsum(counts)
    cluster = move_nodes(*arguments, offset, start(batch, counts), 1000)
    lowest = cut_objective(graph, arguments[1], cluster)
    for i, c in zip(graph.row.tolist(), cluster[graph.col].tolist(), strict=True):
        other = cluster.clone()
        other[i] = c
        if other.unique().numel() == counts[0]:
            assert cut_objective(graph, arguments[1], other) > lowest - 1e-9


def test_close_to_the_best_partition_there_is():
    graph, batch, _ = batch_of_graphs(sizes=(9,), seed=3)
    arguments, offset = settings(graph, batch), torch.tensor([0, 3])
    found = move_nodes(*arguments, offset, merge_clusters(*arguments, offset), 20)
    partitions = (torch.tensor(p) for p in itertools.product(range(3), repeat=9) if len(set(p)) == 3)
    best = min(cut_objective(graph, arguments[1], p) for p in partitions)
    assert cut_objective(graph, arguments[1], found) <= 1.1 * best


def test_a_node_that_is_nearly_all_of_its_cluster_stays():
    graph = weighted([(0, 1), (1, 2), (2, 3)], 4, [1e-30, 1.0, 1.0])
    arguments = settings(graph, torch.zeros(4, dtype=torch.long))
    cluster = torch.tensor([0, 0, 1, 1])  # without node 1, the weight of cluster 0 would be rounding
    assert move_nodes(*arguments, torch.tensor([0, 2]), cluster, 20).unique().numel() == 2
