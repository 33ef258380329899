"""Stage 3, merging: nodes merge into clusters. Those that lower the cut most merge first."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_gic.coarsening.graph import UndirectedGraph
from torch_gic.coarsening.rank import mix
from torch_gic.coarsening.segments import (
    LAST,
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

    Every node starts as a cluster. In each round, a cluster prefers the neighbour with the lowest change of :math:`J`,

    .. math::
        \Delta_{ab} = \frac{\mathrm{cut}_a + \mathrm{cut}_b - 2 \, \mathrm{links}(a, b)}{s_a + s_b}
        - \frac{\mathrm{cut}_a}{s_a} - \frac{\mathrm{cut}_b}{s_b}.

    - If two clusters prefer each other, the lighter one joins the other.
    - Of the other clusters, half stay, chosen by a hash. The rest may join them.
    - Several clusters may join the same one, until its weight has doubled.
    - Of all that would join in a graph, the better half does. This is close to always merging the best pair. The number of
      rounds still grows only with the logarithm of the number of nodes.
    - If no edge is left between clusters, the lightest clusters merge in pairs.

    With :obj:`max_size`, clusters merge only if they have at most so many nodes together. If no two fit and there are still
    too many, the largest stay. The nodes of the others are left over for :func:`fill_clusters`.

    Args:
        graph (UndirectedGraph): The graphs.
        node_weight (torch.Tensor): The weight :math:`w_i > 0` of each node.
        rank (torch.Tensor): The rank of each node in its graph, by which ties are broken.
        ptr (torch.Tensor): Where the nodes of each graph begin and end. They stand side by side.
        offset (torch.Tensor): Where the clusters of each graph begin and end. A graph has at least one cluster, unless it is
            empty, and at most as many as nodes.
        max_size (int, optional): The largest number of nodes per cluster. 0 means any. (default: :obj:`0`)
        rounding (float, optional): The relative difference up to which numbers count as equal.

    Shapes:
        - **output:** the cluster of each node :math:`(|\mathcal{V}|)`, or -1 for a node that is left over. The clusters of a
          graph are numbered by the lowest rank of their members, after those of the graphs before it.
    """
    # One round for all graphs at once. All shapes stay the same, so that a GPU seldom waits for the host. A cluster is named
    # by one of its nodes. Clusters that have joined others, and links inside clusters, are marked as gone.
    row, col, link, num_graphs, num_nodes = graph.row, graph.col, graph.weight, ptr.numel() - 1, rank.numel()
    if num_nodes == 0:
        return rank.clone()
    if row.numel() == 0:  # one that is gone
        row, col, link = rank.new_zeros(1), rank.new_zeros(1), node_weight.new_zeros(1)
    there = row != col
    nodes = torch.arange(num_nodes, device=rank.device)
    of_node = torch.repeat_interleave(torch.arange(num_graphs, device=ptr.device), ptr.diff(), output_size=num_nodes)
    cluster, alive = nodes, torch.ones_like(rank, dtype=torch.bool)
    # The lowest rank of the members of each cluster, their weight and their number.
    key, mass, size = rank, node_weight, torch.ones_like(rank)
    number, before = 0, None
    while True:
        excess = total_in(alive.long(), of_node, num_graphs) - offset.diff()
        if number % UNSEEN == 0:
            left = int(excess.sum())
            if left == 0 or left == before:
                break
            before = left
        cut = total_in(torch.where(there, link, 0.0), row, num_nodes)
        fits = there & (size[row] + size[col] <= max_size) if max_size > 0 else there
        target = _join(row, col, link, fits, cut, mass, size, key, of_node, excess, number, max_size, rounding)
        target = _pair_up(target, alive, row, fits, mass, size, key, of_node, excess, max_size)
        cluster = target[cluster]
        mass, size = (total_in(torch.where(alive, value, 0), target, num_nodes) for value in (mass, size))
        key = torch.full_like(key, LAST).scatter_reduce(0, target, torch.where(alive, key, LAST), "amin")
        alive = alive & (target == nodes)
        mass, key = torch.where(alive, mass, 1.0), torch.where(alive, key, 0)
        row, col = target[row], target[col]
        there = there & (row != col)
        entry, first, link = totals_by(torch.where(there, row * num_nodes + col, LAST), link)
        row, col, there = row[entry], col[entry], there[entry] & first
        number += 1
    if left > 0 and max_size == 0:
        raise ValueError("Expected a symmetric adjacency and different ranks (got others: no two clusters agree)")
    largest = sorted_by(nodes, torch.where(alive, of_node, num_graphs), -size, key)
    in_order = torch.where(alive, of_node, num_graphs)[largest]
    wanted = torch.nn.functional.pad(offset.diff(), (0, 1))
    kept = torch.zeros_like(alive).scatter(0, largest, position_in(in_order, num_graphs + 1) < wanted[in_order])
    order = sorted_by(nodes, torch.where(kept, of_node, num_graphs), key)
    return torch.full_like(key, -1).scatter(0, order, torch.where(kept[order], nodes, -1))[cluster]


def _join(
    row: Tensor,
    col: Tensor,
    link: Tensor,
    fits: Tensor,
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
    itself, nowhere = torch.arange(key.numel(), device=key.device), key.numel()
    # Symmetric in both, so that the best pair of all prefers each other.
    apart = cut[row] / mass[row] + cut[col] / mass[col]
    change = on_grid((cut[row] + cut[col] - 2 * link) / (mass[row] + mass[col]) - apart)
    tie = mix((torch.minimum(key[row], key[col]) << 32) + torch.maximum(key[row], key[col]))
    best = lowest((change, tie), row, nowhere, fits & (excess > 0)[graph[row]])
    asks, best = best >= 0, best.clamp(min=0)
    partner = torch.where(asks, col[best], itself)
    change, tie = change[best], tie[best]

    mutual = asks & (partner[partner] == itself)
    keeps = mutual & ((mass > mass[partner]) | ((mass == mass[partner]) & (key < key[partner])))
    waits = asks & ~mutual & ~keeps[partner] & ((mix(key + (number << 32)) & 1) == 1)
    stays = keeps | waits
    joins = asks & ~stays & stays[partner]

    host = torch.where(joins, partner, nowhere)
    a = sorted_by(itself, host, change, tie)
    position, b = position_in(host[a], nowhere + 1), partner[a]
    gained = running_sum_in(torch.where(joins, mass, 0.0)[a], position)
    enough = joins[a] & ((position == 0) | (gained <= (1 + rounding) * mass[b]))
    if max_size > 0:
        enough &= running_sum_in(torch.where(joins, size, 0)[a], position) + size[b] <= max_size
    joins = joins.scatter(0, a, enough)

    place = torch.where(joins, graph, excess.numel())
    a = sorted_by(itself, place, change, tie)
    half = (total_in(joins.long(), graph, excess.numel()) + 1) // 2
    accepted = joins[a] & (position_in(place[a], excess.numel() + 1) < torch.minimum(excess, half)[graph[a]])
    return itself.scatter(0, a, torch.where(accepted, partner[a], a))


def _pair_up(
    target: Tensor,
    alive: Tensor,
    row: Tensor,
    fits: Tensor,
    mass: Tensor,
    size: Tensor,
    key: Tensor,
    graph: Tensor,
    excess: Tensor,
    max_size: int,
) -> Tensor:
    """In graphs that have too many clusters and no edge between any that fit, the second lightest joins the lightest, and so
    on. With :obj:`max_size`, the smallest come first: if those two do not fit, no others do."""
    linked = total_in(fits.long(), graph[row], excess.numel()) > 0
    lone = alive & ((excess > 0) & ~linked)[graph]
    place = torch.where(lone, graph, excess.numel())
    a = sorted_by(torch.arange(key.numel(), device=key.device), place, mass if max_size == 0 else size, key)
    b, position = a.roll(1), position_in(place[a], excess.numel() + 1)
    second = lone[a] & (position % 2 == 1) & (position // 2 < excess[graph[a]])
    if max_size > 0:
        second &= size[a] + size[b] <= max_size
    return target.scatter(0, a, torch.where(second, b, target[a]))
