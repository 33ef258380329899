"""Nodes that merging leaves over go to clusters that have room."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_gic.coarsening.graph import UndirectedGraph
from torch_gic.coarsening.segments import lowest, on_grid, position_in, sorted_by, total_in


def fill_clusters(graph: UndirectedGraph, rank: Tensor, ptr: Tensor, offset: Tensor, cluster: Tensor, max_size: int) -> Tensor:
    r"""Puts each node without a cluster into a cluster of its graph that has less than :obj:`max_size` nodes.

    In each round, a node prefers the cluster with room to which it has the strongest links. Each cluster takes the nodes with
    the strongest links, as long as it has room. Nodes without a neighbour in a cluster with room come last, in the order of
    their ranks, to where room is left.

    Args:
        graph (UndirectedGraph): The graphs.
        rank (torch.Tensor): The rank of each node in its graph.
        ptr (torch.Tensor): Where the nodes of each graph begin and end. They stand side by side.
        offset (torch.Tensor): Where the clusters of each graph begin, and end.
        cluster (torch.Tensor): The cluster of each node, or -1 for none yet.
        max_size (int): The largest number of nodes of a cluster. There must be room for all.

    Shapes:
        - **output:** the cluster of each node :math:`(|\mathcal{V}|)`
    """
    row, col, weight = graph.row, graph.col, graph.weight
    cluster, num_clusters = cluster.clone(), int(offset[-1])
    while True:
        room = max_size - torch.bincount(cluster[cluster >= 0], minlength=num_clusters)
        useful = (cluster[row] < 0) & (cluster[col] >= 0)
        useful[useful.clone()] = room[cluster[col[useful]]] > 0
        pair, position = torch.unique(row[useful] * max(num_clusters, 1) + cluster[col[useful]], return_inverse=True)
        if pair.numel() == 0:
            break
        node, to = pair // num_clusters, pair % num_clusters
        strength = -on_grid(total_in(weight[useful], position, pair.numel()))
        wish = lowest((strength, to), node, cluster.numel())
        wish = sorted_by(wish[wish >= 0], to, strength, rank[node])
        taken = wish[position_in(to[wish], num_clusters) < room[to[wish]]]
        cluster[node[taken]] = to[taken]

    of_node = torch.repeat_interleave(torch.arange(ptr.numel() - 1, device=ptr.device), ptr.diff())
    left = sorted_by((cluster < 0).nonzero().view(-1), of_node, rank)
    place = torch.repeat_interleave(torch.arange(num_clusters, device=ptr.device), room)
    start = torch.nn.functional.pad(room.cumsum(0), (1, 0))[offset[:-1]]  # of the places of each graph
    cluster[left] = place[start[of_node[left]] + position_in(of_node[left], ptr.numel() - 1)]
    return cluster
