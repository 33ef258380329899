import itertools

import pytest
import torch
from clusters import batch_of_graphs, settings, start, weighted
from torch_geometric.utils import cumsum

from torch_gic.coarsening import refine_clusters


def refined(graph, batch, counts, cluster, num_iterations=20, max_size=100):
    _, _, *order = settings(graph, batch)
    return refine_clusters(graph, *order, cumsum(counts), cluster, num_iterations, max_size)


def cut(graph, cluster):
    return float(graph.weight[cluster[graph.row] != cluster[graph.col]].sum())


def two_cliques():
    edges = [*itertools.combinations(range(4), 2), *itertools.combinations(range(4, 8), 2), (3, 4)]
    return weighted(edges, 8), torch.zeros(8, dtype=torch.long), torch.tensor([2])


def test_a_node_goes_where_it_belongs():
    wrong = torch.tensor([0, 0, 0, 1, 1, 1, 1, 1])
    assert refined(*two_cliques(), wrong, 1, 5).tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert refined(*two_cliques(), wrong, 0, 5).tolist() == wrong.tolist()
    right = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
    assert torch.equal(refined(*two_cliques(), right, 20, 4), right)


def test_groups_move_where_no_node_would():
    """Pairs with a heavy edge between them, in a ring of light ones: each node alone would cut its heavy edge."""
    edges = [(i, (i + 1) % 12) for i in range(12)]
    graph = weighted(edges, 12, [10.0 if i % 2 == 0 else 1.0 for i in range(12)])
    wrong = torch.tensor([0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1])
    batch, counts = torch.zeros(12, dtype=torch.long), torch.tensor([2])
    found = refined(graph, batch, counts, wrong, 20, 8)
    assert cut(graph, wrong) == 6 * 2 * 0.1 / 2
    assert cut(graph, found) == 2 * 2 * 0.1 / 2


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("slack", [0, 2])
def test_never_cuts_more_and_keeps_sizes(seed, slack):
    graph, batch, counts = batch_of_graphs(seed=seed)
    cluster = start(batch, counts, seed)
    max_size = int(torch.bincount(cluster).max()) + slack
    found = refined(graph, batch, counts, cluster, max_size=max_size)
    size = torch.bincount(found, minlength=int(counts.sum()))
    assert int(size.min()) >= 1
    assert int(size.max()) <= max_size
    offset = cumsum(counts)
    assert torch.equal(torch.bucketize(found, offset, right=True) - 1, batch)  # in a cluster of its own graph
    assert cut(graph, found) < (0.9 if slack else 1) * cut(graph, cluster)
