"""Stage 4, moving: EM with hard assignments. Nodes move to the clusters of their neighbours."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_gic.coarsening.graph import UndirectedGraph
from torch_gic.coarsening.segments import (
    ROUNDING,
    UNSEEN,
    lowest,
    on_grid,
    position_in,
    running_sum_in,
    sorted_by,
    total_in,
    totals_by,
)

MOST_TOGETHER = 64  # nodes that go from one cluster to another in one iteration


def move_nodes(
    graph: UndirectedGraph,
    node_weight: Tensor,
    rank: Tensor,
    ptr: Tensor,
    offset: Tensor,
    cluster: Tensor,
    num_iterations: int,
    most_together: int = MOST_TOGETHER,
    rounding: float = ROUNDING,
) -> Tensor:
    r"""Lowers the weighted cut :math:`J = \sum_c \mathrm{cut}_c / s_c` (:func:`merge_clusters`) by moving nodes.

    Node :math:`i` of cluster :math:`a` prefers to move to the cluster :math:`b` of a neighbour for which

    .. math::
        \Delta_{ib} = \frac{\mathrm{cut}_a - d_i + 2 \, \mathrm{links}(i, a)}{s_a - w_i} - \frac{\mathrm{cut}_a}{s_a}
        + \frac{\mathrm{cut}_b + d_i - 2 \, \mathrm{links}(i, b)}{s_b + w_i} - \frac{\mathrm{cut}_b}{s_b}

    is lowest, if it is negative. This is the exact change of :math:`J`, and of the distortion of weighted kernel k-means
    (:func:`~torch_gic.coarsening.soft.cut_affinity`). It is the E-step of one node, followed by the M-step of both clusters.

    In each iteration, pairs :math:`(a, b)` of clusters are selected, best first, such that no two pairs share a cluster. For
    each pair, the nodes that prefer to move from :math:`a` to :math:`b` are sorted, best first. The first of them move: as
    many as lower :math:`J` the most together. The sum of their changes is an upper bound if some of them are neighbours, so
    :math:`J` never rises. No cluster loses its last node.

    Args:
        graph (UndirectedGraph): The graphs.
        node_weight (torch.Tensor): The weight :math:`w_i > 0` of each node.
        rank (torch.Tensor): The rank of each node in its graph, by which ties are broken.
        ptr (torch.Tensor): Where the nodes of each graph begin and end. They stand side by side.
        offset (torch.Tensor): Where the clusters of each graph begin, and end.
        cluster (torch.Tensor): The cluster of each node at the start.
        num_iterations (int): The largest number of iterations. It ends earlier when nothing changes.
        most_together (int, optional): The largest number of nodes that move from one cluster to another per iteration.
        rounding (float, optional): The relative difference up to which numbers count as equal.

    Shapes:
        - **output:** the cluster of each node :math:`(|\mathcal{V}|)`
    """
    # One iteration for all graphs at once. All shapes are known beforehand, so that a GPU seldom waits for the host.
    row, col, size = graph.row, graph.col, rank.numel()
    if row.numel() == 0:
        return cluster.clone()
    weight = torch.where(row == col, 0.0, graph.weight)
    degree = total_in(weight, row, size)
    before = cluster
    for number in range(num_iterations):  # of as many clusters as nodes at most
        if number > 0 and number % UNSEEN == 0:
            if torch.equal(cluster, before):
                break
            before = cluster
        mass = total_in(node_weight, cluster, size)
        entry, first, link = totals_by(row * size + cluster[col], weight)
        node, to = row[entry], cluster[col[entry]]
        origin, w = cluster[node], node_weight[node]
        inside = first & (origin == to)
        own = torch.zeros_like(degree).scatter_add(0, node, torch.where(inside, link, 0.0))
        cut = total_in(degree - own, cluster, size)

        useful = first & ~inside & (mass[origin] - w > rounding * mass[origin])
        left = torch.where(useful, mass[origin] - w, 1.0)
        leaving = (cut[origin] - degree[node] + 2 * own[node]) / left - cut[origin] / mass[origin]
        change = on_grid(leaving + (cut[to] + degree[node] - 2 * link) / (mass[to] + w) - cut[to] / mass[to])
        wish = lowest((change, to), node, size, useful & (change < 0))
        to, change, link = (value[wish.clamp(min=0)] for value in (to, change, link))
        cluster = _move(
            cluster, wish >= 0, to, change, link, rank, degree, own, node_weight, cut, mass, most_together, rounding
        )
    return cluster


def _move(
    cluster: Tensor,
    wishes: Tensor,
    to: Tensor,
    change: Tensor,
    link: Tensor,
    rank: Tensor,
    degree: Tensor,
    own: Tensor,
    node_weight: Tensor,
    cut: Tensor,
    mass: Tensor,
    most_together: int,
    rounding: float,
) -> Tensor:
    """Selects the moves to apply, among the nodes that prefer to move, and applies them."""
    # A pair of clusters is served if its best wish is the best of both, among all wishes to and from them.
    node, nowhere = torch.arange(cluster.numel(), device=cluster.device), cluster.numel()
    both = torch.cat([cluster, to])
    best = lowest((change.repeat(2), rank.repeat(2)), both, nowhere, wishes.repeat(2))
    best = torch.where(best >= 0, best % nowhere, -1)
    served = wishes & (best[cluster] == node) & (best[to] == node)
    destination = cluster.new_full((nowhere + 1,), -1)
    destination = destination.scatter(0, torch.where(served, cluster, nowhere), torch.where(served, to, -1))
    group = wishes & (destination[cluster] == to)

    origin = torch.where(group, cluster, nowhere)
    i = sorted_by(node, origin, change, rank)
    group, origin, a, b = group[i], origin[i], cluster[i], to[i]
    position = position_in(origin, nowhere + 1)
    group = group & (position < most_together)
    moved, leaving, coming = (
        running_sum_in(torch.where(group, value, 0.0), position, most_together)
        for value in (node_weight[i], 2 * own[i] - degree[i], degree[i] - 2 * link[i])
    )
    possible = group & (mass[a] - moved > rounding * mass[a])
    left = torch.where(possible, mass[a] - moved, 1.0)
    objective = on_grid((cut[a] + leaving) / left + (cut[b] + coming) / (mass[b] + moved))
    last = lowest((objective, position), origin, nowhere + 1, possible)
    last = torch.where(last >= 0, position[last.clamp(min=0)], -1)
    return cluster.scatter(0, i, torch.where(group & (position <= last[origin]), b, a))
