"""The start of coarsening: vertices merge into clusters, those first whose merging lowers the cut the most."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from torch_gic.coarsening.segments import LAST, lowest, on_grid, position_in, running_sum, sorted_by, total_in
from torch_gic.coarsening.structural_rank import mix
from torch_gic.kernels.library import OPS, register_reference

MOST_GAIN = 1 + 1e-9  # of its weight, what a cluster may gain in a round; a little more, so that rounding decides nothing

OPS.define(
    "merge_clusters(Tensor row, Tensor col, Tensor weight, Tensor vertex_weight, Tensor rank, Tensor ptr,"
    " Tensor offset) -> Tensor"
)


def merge_clusters(
    row: Tensor, col: Tensor, weight: Tensor, vertex_weight: Tensor, rank: Tensor, ptr: Tensor, num_clusters: Tensor
) -> Tensor:
    r"""Merges the vertices of each graph into clusters by the weighted cut

    .. math::
        J = \sum_c \frac{\mathrm{cut}_c}{s_c}, \qquad \mathrm{cut}_c = \mathrm{links}(\mathcal{V}_c, \mathcal{V} \setminus
        \mathcal{V}_c), \quad s_c = \sum_{i \in \mathcal{V}_c} w_i.

    Every vertex starts as a cluster. In each round, a cluster prefers the neighbour with which merging changes :math:`J` the
    best, by

    .. math::
        \Delta_{ab} = \frac{\mathrm{cut}_a + \mathrm{cut}_b - 2 \, \mathrm{links}(a, b)}{s_a + s_b}
        - \frac{\mathrm{cut}_a}{s_a} - \frac{\mathrm{cut}_b}{s_b}.

    Of two that prefer each other the lighter one joins the other; of those whose preference is not returned, half stay, by a
    hash, and the other half may join them. Several may join one cluster until its weight has doubled. Of all that would join
    in a graph, the better half does, which keeps close to always merging the best pair and still ends after a number of
    rounds that grows with the logarithm of the number of vertices. Where no edge is left between clusters, the
    lightest merge in pairs.

    Args:
        row (torch.Tensor): The rows of the entries of a symmetric adjacency, which are sorted by row and column.
        col (torch.Tensor): Their columns.
        weight (torch.Tensor): Their values.
        vertex_weight (torch.Tensor): The weight :math:`w_i > 0` of each vertex.
        rank (torch.Tensor): The rank of each vertex in its graph, by which ties are broken.
        ptr (torch.Tensor): Where the vertices of each graph begin, which stand side by side, and end.
        num_clusters (torch.Tensor): The number of clusters of each graph, from 1 (or 0 in an empty graph) to its number of
            vertices.

    Shapes:
        - **input:** entries :math:`(|\mathcal{E}|)`, vertex weights and ranks :math:`(|\mathcal{V}|)`, boundaries
          :math:`(B + 1)`, counts :math:`(B)`
        - **output:** the cluster of each vertex :math:`(|\mathcal{V}|)`. Those of a graph are numbered by the lowest rank
          of their members, after those of the graphs before it.
    """
    offset = F.pad(num_clusters.cumsum(0), (1, 0))
    return torch.ops.torch_gic.merge_clusters(row, col, weight, vertex_weight, rank, ptr, offset)


@register_reference("merge_clusters")
def reference(
    row: Tensor,
    col: Tensor,
    weight: Tensor,
    vertex_weight: Tensor,
    rank: Tensor,
    ptr: Tensor,
    offset: Tensor,
) -> Tensor:
    """One round for all graphs at once."""
    num_graphs = ptr.numel() - 1
    graph = torch.repeat_interleave(torch.arange(num_graphs, device=ptr.device), ptr.diff())  # the graph of each cluster
    cluster = torch.arange(rank.numel(), device=rank.device)
    key, mass = rank, vertex_weight  # the lowest rank of the members of each cluster, and their weight
    between = row != col
    row, col, link = row[between], col[between], weight[between]
    number = 0
    while True:
        excess = torch.bincount(graph, minlength=num_graphs) - offset.diff()
        if not bool((excess > 0).any()):
            break
        cut = total_in(link, row, key.numel())
        target = _join(row, col, link, cut, mass, key, graph, excess, number)
        _pair_up(target, row, mass, key, graph, excess)
        stays = target == torch.arange(key.numel(), device=key.device)
        label = (stays.cumsum(0) - 1)[target]
        count = int(stays.sum())
        cluster, graph, mass = label[cluster], graph[stays], total_in(mass, label, count)
        key = key.new_full((count,), LAST).scatter_reduce(0, label, key, "amin")
        pair, position = torch.unique(label[row] * count + label[col], return_inverse=True)
        link = total_in(link, position, pair.numel())
        row, col = pair // count, pair % count
        between = row != col
        row, col, link = row[between], col[between], link[between]
        number += 1
    order = sorted_by(torch.arange(key.numel(), device=key.device), graph, key)
    return torch.empty_like(order).scatter(0, order, torch.arange(order.numel(), device=order.device))[cluster]


def _join(
    row: Tensor,
    col: Tensor,
    link: Tensor,
    cut: Tensor,
    mass: Tensor,
    key: Tensor,
    graph: Tensor,
    excess: Tensor,
    number: int,
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
    first = position_in(partner[by_partner], key.numel()) == 0
    gained = running_sum(mass[by_partner])
    gained = gained - (gained - mass[by_partner])[first.nonzero().view(-1)][first.cumsum(0) - 1]
    fits = torch.zeros_like(asks)
    fits[by_partner] = first | (gained <= MOST_GAIN * mass[partner[by_partner]])
    joining = joining[fits[joining]]
    half = (torch.bincount(graph[joining], minlength=excess.numel()) + 1) // 2
    joining = joining[position_in(graph[joining], excess.numel()) < torch.minimum(excess, half)[graph[joining]]]
    return itself.index_put((joining,), partner[joining])


def _pair_up(target: Tensor, row: Tensor, mass: Tensor, key: Tensor, graph: Tensor, excess: Tensor) -> None:
    """In graphs that have too many clusters and no edge between them, the second lightest joins the lightest, and so on."""
    joined = torch.zeros_like(excess, dtype=torch.bool).index_fill(0, graph[row], True)
    lone = sorted_by(((excess > 0) & ~joined)[graph].nonzero().view(-1), graph, mass, key)
    position = position_in(graph[lone], excess.numel())
    second = ((position % 2 == 1) & (position // 2 < excess[graph[lone]])).nonzero().view(-1)
    target[lone[second]] = lone[second - 1]


@torch.library.register_fake("torch_gic::merge_clusters", lib=OPS)
def _(row: Tensor, col: Tensor, weight: Tensor, vertex_weight: Tensor, rank: Tensor, *sizes: object) -> Tensor:
    return torch.empty_like(rank)
