"""The start of coarsening: clusters that grow from seeds spread over each graph."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.utils import cumsum, scatter

from torch_gic._library import OPS, register_reference

UNREACHED = torch.iinfo(torch.int64).max

OPS.define(
    "seed_clusters(Tensor rowptr, Tensor col, Tensor priority, Tensor ptr, Tensor offset, SymInt num_clusters)"
    " -> (Tensor, Tensor)"
)


def seed_clusters(edge_index: Tensor, priority: Tensor, batch: Tensor, num_clusters: Tensor) -> tuple[Tensor, Tensor]:
    r"""Farthest-first seeds and their breadth-first cells.

    In each graph, the next seed is the vertex with the most hops to all seeds so far; of equals the one with the
    highest :obj:`priority`, then the lowest number. A vertex belongs to the nearest seed, of equals to the earlier one;
    parts of a graph that no seed reaches are left to cluster 0. Nothing is random, and but for ties in priority nothing
    depends on the order of the vertices.

    Args:
        edge_index (torch.Tensor): The edges; their direction does not matter.
        priority (torch.Tensor): Which of several vertices at equal distance comes first.
        batch (torch.Tensor): The graph of each vertex.
        num_clusters (torch.Tensor): The number of clusters of each graph, at most its number of vertices.

    Returns:
        The cluster of each vertex, counted from 0 in each graph, and the seed vertex of every cluster of all graphs.

    Shapes:
        - **input:** edges :math:`(2, |\mathcal{E}|)`, priorities and batch :math:`(|\mathcal{V}|)`, counts :math:`(B)`
        - **output:** clusters :math:`(|\mathcal{V}|)`, seeds :math:`(\sum_g C_g)`
    """
    num_nodes = batch.numel()
    order = torch.argsort(batch, stable=True)  # vertices of one graph side by side, also where 'batch' is not sorted
    rank = torch.empty_like(order).scatter_(0, order, torch.arange(num_nodes, device=order.device))
    row, col = rank[torch.cat([edge_index, edge_index.flip(0)], dim=1)]
    row, by_row = torch.sort(row, stable=True)
    rowptr = cumsum(torch.bincount(row, minlength=num_nodes))
    ptr = cumsum(torch.bincount(batch, minlength=num_clusters.numel()))
    offset = cumsum(num_clusters)
    cluster, seed = torch.ops.torch_gic.seed_clusters(
        rowptr, col[by_row], priority[order].double(), ptr, offset, int(offset[-1])
    )
    return cluster[rank], order[seed]


@register_reference("seed_clusters")
def reference(
    rowptr: Tensor, col: Tensor, priority: Tensor, ptr: Tensor, offset: Tensor, num_clusters: int
) -> tuple[Tensor, Tensor]:
    """The next seed of all graphs at once, then one breadth-first search from all these seeds."""
    num_nodes, num_graphs = priority.numel(), ptr.numel() - 1
    vertex = torch.arange(num_nodes, device=col.device)
    row = torch.repeat_interleave(vertex, rowptr.diff())
    batch = torch.repeat_interleave(torch.arange(num_graphs, device=col.device), ptr.diff())
    distance = torch.full_like(vertex, UNREACHED)
    cluster = torch.zeros_like(vertex)
    seed = offset.new_zeros(num_clusters)
    for c in range(int(offset.diff().max()) if num_graphs > 0 else 0):
        asking = offset.diff() > c
        candidate = asking[batch]
        for preference in (distance, priority, -vertex):
            preferred = torch.where(
                candidate, preference, torch.finfo(torch.float64).min if preference.is_floating_point() else -UNREACHED
            )
            candidate = candidate & (preferred == scatter(preferred, batch, dim_size=num_graphs, reduce="max")[batch])
        new = candidate.nonzero().view(-1)
        seed[offset[:-1][asking] + c] = new
        distance[new], cluster[new] = 0, c
        frontier, hops = candidate, 0
        while bool(frontier.any()):
            hops += 1
            reached = torch.zeros_like(candidate)
            reached[col[frontier[row]]] = True
            frontier = reached & (hops < distance)
            distance, cluster = distance.masked_fill(frontier, hops), cluster.masked_fill(frontier, c)
    return cluster, seed


@torch.library.register_fake("torch_gic::seed_clusters", lib=OPS)
def _(rowptr: Tensor, col: Tensor, priority: Tensor, ptr: Tensor, offset: Tensor, num_clusters: int) -> tuple[Tensor, Tensor]:
    return torch.empty_like(priority, dtype=torch.int64), offset.new_empty(num_clusters)
