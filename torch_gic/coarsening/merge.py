"""Stage 3, merging: nodes merge into clusters, those first whose merging lowers the cut the most."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_gic.coarsening.graph import UndirectedGraph
from torch_gic.coarsening.rank import mix
from torch_gic.coarsening.segments import LAST, ROUNDING, lowest, on_grid, position_in, running_sum_in, sorted_by, total_in


def merge_clusters(
    graph: UndirectedGraph,
    node_weight: Tensor,
    rank: Tensor,
    ptr: Tensor,
    offset: Tensor,
    max_size: int = 0,
    rounding: float = ROUNDING,
) -> Tensor:
    r"""Merges the nodes of each graph into clusters by the weighted cut

    .. math::
        J = \sum_c \frac{\mathrm{cut}_c}{s_c}, \qquad \mathrm{cut}_c = \mathrm{links}(\mathcal{V}_c, \mathcal{V} \setminus
        \mathcal{V}_c), \quad s_c = \sum_{i \in \mathcal{V}_c} w_i.

    Every node starts as a cluster. In each round, a cluster prefers the neighbour with which merging changes :math:`J` the
    best, by

    .. math::
        \Delta_{ab} = \frac{\mathrm{cut}_a + \mathrm{cut}_b - 2 \, \mathrm{links}(a, b)}{s_a + s_b}
        - \frac{\mathrm{cut}_a}{s_a} - \frac{\mathrm{cut}_b}{s_b}.

    Of two that prefer each other the lighter one joins the other; of those whose preference is not returned, half stay, by a
    hash, and the other half may join them. Several may join one cluster until its weight has doubled. Of all that would join
    in a graph, the better half does, which keeps close to always merging the best pair and still ends after a number of
    rounds that grows with the logarithm of the number of nodes. Where no edge is left between clusters, the
    lightest merge in pairs.

    With :obj:`max_size`, clusters merge only if they have at most so many nodes together. Where no two fit any more and
    there are still too many, the largest stay, and the nodes of the others are left over, for :func:`fill_clusters`.

    Args:
        graph (UndirectedGraph): The graphs.
        node_weight (torch.Tensor): The weight :math:`w_i > 0` of each node.
        rank (torch.Tensor): The rank of each node in its graph, by which ties are broken.
        ptr (torch.Tensor): Where the nodes of each graph begin, which stand side by side, and end.
        offset (torch.Tensor): Where the clusters of each graph begin, and end: 1 to as many as nodes (0 if it is empty).
        max_size (int, optional): The largest number of nodes per cluster; 0: any. (default: :obj:`0`)
        rounding (float, optional): Relative errors that decide nothing.

    Shapes:
        - **output:** the cluster of each node :math:`(|\mathcal{V}|)`. Those of a graph are numbered by the lowest rank
          of their members, after those of the graphs before it; -1 for a node that is left over.
    """
    # One round for all graphs at once.
    row, col, weight = graph.row, graph.col, graph.weight
    num_graphs = ptr.numel() - 1
    graph_of = torch.repeat_interleave(torch.arange(num_graphs, device=ptr.device), ptr.diff())  # of each cluster
    cluster = torch.arange(rank.numel(), device=rank.device)
    # The lowest rank of the members of each cluster, their weight and their number.
    key, mass, size = rank, node_weight, torch.ones_like(rank)
    between = row != col
    row, col, link = row[between], col[between], weight[between]
    number = 0
    while True:
        excess = torch.bincount(graph_of, minlength=num_graphs) - offset.diff()
        if not bool((excess > 0).any()):
            break
        cut = total_in(link, row, key.numel())
        fits = (size[row] + size[col] <= max_size) if max_size > 0 else torch.ones_like(row, dtype=torch.bool)
        pairs = row[fits], col[fits], link[fits]
        target = _join(*pairs, cut, mass, size, key, graph_of, excess, number, max_size, rounding)
        _pair_up(target, pairs[0], mass, size, key, graph_of, excess, max_size)
        stays = target == torch.arange(key.numel(), device=key.device)
        label = (stays.cumsum(0) - 1)[target]
        count = int(stays.sum())
        if count == key.numel():
            if max_size == 0:
                raise ValueError("Expected a symmetric adjacency and different ranks (got others: no two clusters agree)")
            break  # no two fit
        cluster, graph_of, mass, size = (
            label[cluster],
            graph_of[stays],
            total_in(mass, label, count),
            total_in(size, label, count),
        )
        key = key.new_full((count,), LAST).scatter_reduce(0, label, key, "amin")
        pair, position = torch.unique(label[row] * count + label[col], return_inverse=True)
        link = total_in(link, position, pair.numel())
        row, col = pair // count, pair % count
        between = row != col
        row, col, link = row[between], col[between], link[between]
        number += 1
    largest = sorted_by(torch.arange(key.numel(), device=key.device), graph_of, -size, key)
    kept = largest[position_in(graph_of[largest], num_graphs) < offset.diff()[graph_of[largest]]]
    order = sorted_by(kept, graph_of, key)
    return torch.full_like(key, -1).scatter(0, order, torch.arange(order.numel(), device=order.device))[cluster]


def _join(
    row: Tensor,
    col: Tensor,
    link: Tensor,
    cut: Tensor,
    mass: Tensor,
    size: Tensor,
    key: Tensor,
    graph: Tensor,
    excess: Tensor,
    number: int,
    max_size: int,
    rounding: float,
) -> Tensor:
    """The cluster that each cluster joins in this round: itself if it joins none."""
    itself = torch.arange(key.numel(), device=key.device)
    wanted = excess[graph[row]] > 0
    row, col, link = row[wanted], col[wanted], link[wanted]
    # Symmetric in both, so that the best pair of all prefers each other.
    apart = cut[row] / mass[row] + cut[col] / mass[col]
    change = on_grid((cut[row] + cut[col] - 2 * link) / (mass[row] + mass[col]) - apart)
    tie = mix((torch.minimum(key[row], key[col]) << 32) + torch.maximum(key[row], key[col]))
    best = lowest((change, tie), row, key.numel())
    asks = best >= 0
    best = best[asks]
    partner = itself.masked_scatter(asks, col[best])
    change, tie = (torch.zeros_like(key).masked_scatter(asks, value[best]) for value in (change, tie))

    mutual = asks & (partner[partner] == itself)
    keeps = mutual & ((mass > mass[partner]) | ((mass == mass[partner]) & (key < key[partner])))
    waits = asks & ~mutual & ~keeps[partner] & ((mix(key + (number << 32)) & 1) == 1)
    stays = keeps | waits
    joining = sorted_by((asks & ~stays & stays[partner]).nonzero().view(-1), graph, change, tie)

    by_partner = sorted_by(joining, partner)
    host = partner[by_partner]
    position = position_in(host, key.numel())
    fits = torch.zeros_like(asks)
    fits[by_partner] = (position == 0) | (running_sum_in(mass[by_partner], position) <= (1 + rounding) * mass[host])
    if max_size > 0:
        fits[by_partner] &= running_sum_in(size[by_partner], position) + size[host] <= max_size
    joining = joining[fits[joining]]
    half = (torch.bincount(graph[joining], minlength=excess.numel()) + 1) // 2
    joining = joining[position_in(graph[joining], excess.numel()) < torch.minimum(excess, half)[graph[joining]]]
    return itself.index_put((joining,), partner[joining])


def _pair_up(
    target: Tensor, row: Tensor, mass: Tensor, size: Tensor, key: Tensor, graph: Tensor, excess: Tensor, max_size: int
) -> None:
    """In graphs that have too many clusters and no edge between any that fit, the second lightest joins the lightest, and so
    on. With :obj:`max_size`, the smallest come first: if those two do not fit, no others do."""
    joined = torch.zeros_like(excess, dtype=torch.bool).index_fill(0, graph[row], True)
    lone = ((excess > 0) & ~joined)[graph].nonzero().view(-1)
    lone = sorted_by(lone, graph, mass if max_size == 0 else size, key)
    position = position_in(graph[lone], excess.numel())
    second = ((position % 2 == 1) & (position // 2 < excess[graph[lone]])).nonzero().view(-1)
    if max_size > 0:
        second = second[size[lone[second]] + size[lone[second - 1]] <= max_size]
    target[lone[second]] = lone[second - 1]
