"""Graphs for the tests of coarsening, and its objective by its definition."""

import torch
from torch_geometric.utils import cumsum

from torch_gic.coarsening import node_volume, structural_rank, undirected_graph


def weighted(edges, num_nodes, weight=None):
    """A graph by hand."""
    edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t()
    weight = torch.ones(len(edges), dtype=torch.float64) if weight is None else torch.tensor(weight, dtype=torch.float64)
    return undirected_graph(edge_index, weight, torch.zeros(num_nodes, dtype=torch.long), 1)


def batch_of_graphs(sizes=(30, 1, 47, 0, 12, 80), degree=4, unit=False, seed=0):
    """Random graphs side by side, some in several parts, their batch and a number of clusters for each."""
    generator = torch.Generator().manual_seed(seed)
    size = torch.tensor(sizes)
    edges = [
        first + torch.randint(n, (2, degree * n // 2), generator=generator)
        for first, n in zip(cumsum(size)[:-1], sizes, strict=True)
        if n > 0
    ]
    edge_index = torch.cat(edges, dim=1)
    weight = torch.ones(edge_index.size(1)) if unit else torch.rand(edge_index.size(1), generator=generator)
    batch = torch.repeat_interleave(torch.arange(len(sizes)), size)
    return undirected_graph(edge_index, weight.double(), batch, len(sizes)), batch, (size + 3) // 4


def settings(graph, batch, influence=None):
    """What the stages take first; the weight of a node is its influence times its degree."""
    influence = torch.ones(batch.numel(), dtype=torch.float64) if influence is None else influence
    num_graphs = int(batch.max()) + 1
    weight = influence * node_volume(graph, batch, num_graphs)
    ptr = cumsum(torch.bincount(batch, minlength=num_graphs))
    return graph, weight, structural_rank(graph, influence, batch), ptr


def start(batch, num_clusters, seed=0):
    """A random partition without empty clusters."""
    generator = torch.Generator().manual_seed(seed)
    cluster, offset = torch.empty_like(batch), cumsum(num_clusters)
    for g in batch.unique():
        members = (batch == g).nonzero().view(-1)
        order = torch.randperm(members.numel(), generator=generator)
        cluster[members[order]] = torch.arange(members.numel()) % num_clusters[g] + offset[g]
    return cluster


def cut_objective(graph, node_weight, cluster):
    """sum_c links(V_c, rest) / w(V_c), cluster by cluster."""
    total = 0.0
    for c in cluster.unique():
        inside = cluster == c
        links = graph.weight[inside[graph.row] & ~inside[graph.col]].sum()
        total += float(links / node_weight[inside].sum())
    return total
