"""Stage 4, moving: EM with hard assignments, in which nodes move to the clusters of their neighbours."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_gic.coarsening.graph import UndirectedGraph
from torch_gic.coarsening.segments import ROUNDING, lowest, on_grid, position_in, running_sum, sorted_by, total_in

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

    is lowest, if it is negative. This is the exact change of :math:`J`, and that of the distortion of weighted kernel k-means
    (:func:`~torch_gic.coarsening.soft.cut_affinity`): an E-step for one node, with the M-step of both clusters behind it. In
    each iteration, pairs
    :math:`(a, b)` of clusters of which no two share a cluster are served, best first; for each, those nodes go from
    :math:`a` to :math:`b` whose moving together, from the best on, lowers :math:`J` the most. That sum is an upper bound
    where some of them are neighbours, so :math:`J` never rises. No cluster loses its last node.

    Args:
        graph (UndirectedGraph): The graphs.
        node_weight (torch.Tensor): The weight :math:`w_i > 0` of each node.
        rank (torch.Tensor): The rank of each node in its graph, by which ties are broken.
        ptr (torch.Tensor): Where the nodes of each graph begin, which stand side by side, and end.
        offset (torch.Tensor): Where the clusters of each graph begin, and end.
        cluster (torch.Tensor): The cluster of each node at the start.
        num_iterations (int): The highest number of iterations; it ends earlier when nothing changes any more.
        most_together (int, optional): How many nodes may go from one cluster to another in one iteration.
        rounding (float, optional): Relative errors that decide nothing.

    Shapes:
        - **output:** the cluster of each node :math:`(|\mathcal{V}|)`
    """
    # One iteration for all graphs at once.
    row, col, weight = graph.row, graph.col, graph.weight
    between = row != col
    row, col, weight = row[between], col[between], weight[between]
    degree = total_in(weight, row, rank.numel())
    cluster, num_clusters = cluster.clone(), int(offset[-1])
    for _ in range(num_iterations):
        mass = total_in(node_weight, cluster, num_clusters)
        pair, position = torch.unique(row * num_clusters + cluster[col], return_inverse=True)
        link = total_in(weight, position, pair.numel())
        node, to = pair // max(num_clusters, 1), pair % max(num_clusters, 1)
        inside = cluster[node] == to
        own = torch.zeros_like(degree).index_put((node[inside],), link[inside])
        cut = total_in(degree - own, cluster, num_clusters)

        mass_left = mass[cluster] - node_weight
        useful = ~inside & (mass_left > rounding * mass[cluster])[node]
        node, to, link = node[useful], to[useful], link[useful]
        origin, d, w = cluster[node], degree[node], node_weight[node]
        change = on_grid(
            (cut[origin] - d + 2 * own[node]) / (mass[origin] - w)
            - cut[origin] / mass[origin]
            + (cut[to] + d - 2 * link) / (mass[to] + w)
            - cut[to] / mass[to]
        )
        wish = lowest((change, to), node, rank.numel())
        wish = wish[wish >= 0]
        wish = wish[change[wish] < 0]
        if wish.numel() == 0:
            break
        node, origin, to, change, link = (value[wish] for value in (node, origin, to, change, link))
        chosen = _choose(node, origin, to, change, link, rank, degree, own, node_weight, cut, mass, most_together, rounding)
        cluster[node[chosen]] = to[chosen]
    return cluster


def _choose(
    node: Tensor,
    origin: Tensor,
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
    """Selects the moves to apply."""
    # A pair of clusters is served if its best wish is the best of both, among all wishes to and from them.
    wish = torch.arange(node.numel(), device=node.device)
    both = torch.cat([origin, to])
    best = lowest((change.repeat(2), rank[node].repeat(2)), both, mass.numel())
    best = torch.where(best >= 0, best % wish.numel(), -1)
    served = (best[origin] == wish) & (best[to] == wish)
    destination = torch.full_like(best, -1).index_put((origin[served],), to[served])

    group = sorted_by((destination[origin] == to).nonzero().view(-1), origin, change, rank[node])
    position = position_in(origin[group], mass.numel())
    group, position = group[position < most_together], position[position < most_together]
    served, slot = torch.unique(origin[group], return_inverse=True)

    def so_far(value: Tensor) -> Tensor:
        table = value.new_zeros(served.numel(), most_together).index_put((slot, position), value)
        return running_sum(table)[slot, position]

    i, a, b = node[group], origin[group], to[group]
    moved, leaving, coming = so_far(node_weight[i]), so_far(2 * own[i] - degree[i]), so_far(degree[i] - 2 * link[group])
    left = mass[a] - moved
    objective = on_grid((cut[a] + leaving) / left + (cut[b] + coming) / (mass[b] + moved))
    possible = left > rounding * mass[a]
    last = position[possible][lowest((objective[possible], position[possible]), slot[possible], served.numel())]
    return group[position <= last[slot]]
