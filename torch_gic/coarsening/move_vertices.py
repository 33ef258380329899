"""The end of coarsening: EM with hard assignments, in which vertices move to the clusters of their neighbours."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_gic.coarsening.segments import lowest, on_grid, position_in, running_sum, sorted_by, total_in
from torch_gic.kernels.library import OPS, register_reference

MOST_TOGETHER = 64  # vertices that go from one cluster to another in one iteration
LEAST = 1e-9  # of its weight, what a cluster must keep: below that, the weight of the rest is rounding

OPS.define(
    "move_vertices(Tensor row, Tensor col, Tensor weight, Tensor vertex_weight, Tensor rank, Tensor ptr, Tensor offset,"
    " Tensor cluster, SymInt num_iterations, SymInt max_size=0) -> Tensor"
)


def move_vertices(
    row: Tensor,
    col: Tensor,
    weight: Tensor,
    vertex_weight: Tensor,
    rank: Tensor,
    ptr: Tensor,
    offset: Tensor,
    cluster: Tensor,
    num_iterations: int,
    max_size: int = 0,
) -> Tensor:
    r"""Lowers the weighted cut :math:`J = \sum_c \mathrm{cut}_c / s_c` (:func:`merge_clusters`) by moving vertices.

    Vertex :math:`i` of cluster :math:`a` wants to the cluster :math:`b` of a neighbour for which

    .. math::
        \Delta_{ib} = \frac{\mathrm{cut}_a - d_i + 2 \, \mathrm{links}(i, a)}{s_a - w_i} - \frac{\mathrm{cut}_a}{s_a}
        + \frac{\mathrm{cut}_b + d_i - 2 \, \mathrm{links}(i, b)}{s_b + w_i} - \frac{\mathrm{cut}_b}{s_b}

    is lowest, if it is negative. This is the exact change of :math:`J`, and that of the distortion of weighted kernel k-means
    (:func:`cut_kernel`): an E-step for one vertex, with the M-step of both clusters behind it. In each iteration, pairs
    :math:`(a, b)` of clusters of which no two share a cluster are served, best first; for each, those vertices go from
    :math:`a` to :math:`b` whose moving together, from the best on, lowers :math:`J` the most. That sum is an upper bound
    where some of them are neighbours, so :math:`J` never rises. No cluster loses its last vertex.

    Args:
        row (torch.Tensor): The rows of the entries of a symmetric adjacency, which are sorted by row and column.
        col (torch.Tensor): Their columns.
        weight (torch.Tensor): Their values.
        vertex_weight (torch.Tensor): The weight :math:`w_i > 0` of each vertex.
        rank (torch.Tensor): The rank of each vertex in its graph, by which ties are broken.
        ptr (torch.Tensor): Where the vertices of each graph begin, which stand side by side, and end.
        offset (torch.Tensor): Where the clusters of each graph begin, and end.
        cluster (torch.Tensor): The cluster of each vertex at the start.
        num_iterations (int): The highest number of iterations; it ends earlier when no vertex wants to move.
        max_size (int, optional): The number of vertices up to which a cluster takes others; 0: any. (default: :obj:`0`)

    Shapes:
        - **output:** the cluster of each vertex :math:`(|\mathcal{V}|)`
    """
    return torch.ops.torch_gic.move_vertices(
        row, col, weight, vertex_weight, rank, ptr, offset, cluster, num_iterations, max_size
    )


@register_reference("move_vertices")
def reference(
    row: Tensor,
    col: Tensor,
    weight: Tensor,
    vertex_weight: Tensor,
    rank: Tensor,
    ptr: Tensor,
    offset: Tensor,
    cluster: Tensor,
    num_iterations: int,
    max_size: int = 0,
) -> Tensor:
    """One iteration for all graphs at once."""
    between = row != col
    row, col, weight = row[between], col[between], weight[between]
    degree = total_in(weight, row, rank.numel())
    cluster, num_clusters = cluster.clone(), int(offset[-1])
    for _ in range(num_iterations):
        mass = total_in(vertex_weight, cluster, num_clusters)
        pair, position = torch.unique(row * num_clusters + cluster[col], return_inverse=True)
        link = total_in(weight, position, pair.numel())
        vertex, to = pair // max(num_clusters, 1), pair % max(num_clusters, 1)
        inside = cluster[vertex] == to
        own = torch.zeros_like(degree).index_put((vertex[inside],), link[inside])
        cut = total_in(degree - own, cluster, num_clusters)

        mass_left = mass[cluster] - vertex_weight
        useful = ~inside & (mass_left > LEAST * mass[cluster])[vertex]
        room = torch.full_like(cluster, MOST_TOGETHER)
        if max_size > 0:
            room = max_size - torch.bincount(cluster, minlength=num_clusters)
            useful &= room[to] > 0
        vertex, to, link = vertex[useful], to[useful], link[useful]
        origin, d, w = cluster[vertex], degree[vertex], vertex_weight[vertex]
        change = on_grid(
            (cut[origin] - d + 2 * own[vertex]) / (mass[origin] - w)
            - cut[origin] / mass[origin]
            + (cut[to] + d - 2 * link) / (mass[to] + w)
            - cut[to] / mass[to]
        )
        wish = lowest((change, to), vertex, rank.numel())
        wish = wish[wish >= 0]
        wish = wish[change[wish] < 0]
        if wish.numel() == 0:
            break
        vertex, origin, to, change, link = (value[wish] for value in (vertex, origin, to, change, link))
        chosen = _choose(vertex, origin, to, change, link, rank, degree, own, vertex_weight, cut, mass, room)
        cluster[vertex[chosen]] = to[chosen]
    return cluster


def _choose(
    vertex: Tensor,
    origin: Tensor,
    to: Tensor,
    change: Tensor,
    link: Tensor,
    rank: Tensor,
    degree: Tensor,
    own: Tensor,
    vertex_weight: Tensor,
    cut: Tensor,
    mass: Tensor,
    room: Tensor,
) -> Tensor:
    """Which of the wishes come true."""
    # A pair of clusters is served if its best wish is the best of both, among all wishes to and from them.
    wish = torch.arange(vertex.numel(), device=vertex.device)
    both = torch.cat([origin, to])
    best = lowest((change.repeat(2), rank[vertex].repeat(2)), both, mass.numel())
    best = torch.where(best >= 0, best % wish.numel(), -1)
    served = (best[origin] == wish) & (best[to] == wish)
    destination = torch.full_like(best, -1).index_put((origin[served],), to[served])

    group = sorted_by((destination[origin] == to).nonzero().view(-1), origin, change, rank[vertex])
    position = position_in(origin[group], mass.numel())
    group, position = group[position < MOST_TOGETHER], position[position < MOST_TOGETHER]
    served, slot = torch.unique(origin[group], return_inverse=True)

    def so_far(value: Tensor) -> Tensor:
        table = value.new_zeros(served.numel(), MOST_TOGETHER).index_put((slot, position), value)
        return running_sum(table)[slot, position]

    i, a, b = vertex[group], origin[group], to[group]
    moved, leaving, coming = so_far(vertex_weight[i]), so_far(2 * own[i] - degree[i]), so_far(degree[i] - 2 * link[group])
    left = mass[a] - moved
    objective = on_grid((cut[a] + leaving) / left + (cut[b] + coming) / (mass[b] + moved))
    possible = (left > LEAST * mass[a]) & (position < room[b])
    last = position[possible][lowest((objective[possible], position[possible]), slot[possible], served.numel())]
    return group[position <= last[slot]]


@torch.library.register_fake("torch_gic::move_vertices", lib=OPS)
def _(row: Tensor, col: Tensor, weight: Tensor, vertex_weight: Tensor, rank: Tensor, *others: object) -> Tensor:
    return torch.empty_like(rank)
