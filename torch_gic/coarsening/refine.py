"""Stage 4 for clusters of bounded size, refining: groups of nodes move between clusters, then single nodes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from torch_gic.coarsening.graph import UndirectedGraph
from torch_gic.coarsening.rank import mix
from torch_gic.coarsening.segments import on_grid

NUM_PASSES = 4  # over the nodes of a level
GROWTH = 3  # how many times as large groups may be at the next level


def refine_clusters(
    graph: UndirectedGraph,
    rank: Tensor,
    ptr: Tensor,
    offset: Tensor,
    cluster: Tensor,
    num_iterations: int,
    max_size: int,
    num_passes: int = NUM_PASSES,
    growth: int = GROWTH,
) -> Tensor:
    r"""Lowers the weight of the edges between clusters of at most :obj:`max_size` nodes.

    This is multilevel refinement (Karypis and Kumar, 1998), in cycles:

    1. Nodes of the same cluster join to groups, along their strongest links per node of the group. First groups have at most
       3 nodes, then at most 9, and so on up to half of :obj:`max_size`.
    2. The largest groups move first, then the groups inside them, and single nodes last. They move one after the other.

    A group moves to the cluster with room to which it has the strongest links. These must be stronger than those to its own
    cluster, or as strong if the other cluster stays smaller. No cluster loses its last group. In the next cycle, nodes come in
    another order, by a hash of their ranks, and form other groups.

    Weights are whole numbers here, so sums are the same in any order. The reference is plain Python, since each move has to
    see those before it.

    Args:
        graph (UndirectedGraph): The graphs.
        rank (torch.Tensor): The rank of each node in its graph, by which ties are broken.
        ptr (torch.Tensor): Where the nodes of each graph begin and end. They stand side by side.
        offset (torch.Tensor): Where the clusters of each graph begin, and end.
        cluster (torch.Tensor): The cluster of each node at the start.
        num_iterations (int): The largest number of passes, in which each node may move once. A cycle has :obj:`num_passes` of
            them. It ends earlier when a cycle changes nothing.
        max_size (int): The number of nodes up to which a cluster takes others.
        num_passes (int, optional): The number of passes over the groups of one size per cycle. (default: :obj:`4`)
        growth (int, optional): The factor by which groups may be larger at the next level. (default: :obj:`3`)

    Shapes:
        - **output:** the cluster of each node :math:`(|\mathcal{V}|)`
    """
    refined = cluster.clone()
    for (begin, end), (first, last) in zip(itertools.pairwise(ptr.tolist()), itertools.pairwise(offset.tolist()), strict=True):
        node = torch.empty_like(rank[begin:end]).scatter(0, rank[begin:end], torch.arange(begin, end, device=rank.device))
        neighbors: list[dict[int, int]] = [{} for _ in range(begin, end)]  # by rank
        entries = slice(int(graph.rowptr[begin]), int(graph.rowptr[end]))
        ends = rank[graph.row[entries]].tolist(), rank[graph.col[entries]].tolist()
        for i, j, weight in zip(*ends, on_grid(graph.weight[entries]).tolist(), strict=True):
            if i != j:
                neighbors[i][j] = weight
        level = Level(neighbors, [1] * len(neighbors), (cluster[node] - first).tolist())
        for cycle in range(-(-num_iterations // num_passes)):
            order = mix(torch.arange(end - begin) + (cycle << 32)).argsort().tolist()
            passes, before = min(num_passes, num_iterations - cycle * num_passes), list(level.cluster)
            _refine(level, order, growth, growth, max_size, last - first, passes)
            if level.cluster == before:
                break
        refined[node] = torch.tensor(level.cluster, dtype=torch.long, device=rank.device) + first
    return refined


class Level(NamedTuple):
    """Groups of nodes: their links to others, how many nodes they have, and the cluster they are in."""

    neighbors: list[dict[int, int]]
    size: list[int]
    cluster: list[int]


def _refine(
    level: Level, order: Iterable[int], limit: int, growth: int, max_size: int, num_clusters: int, passes: int
) -> None:
    """Moves groups of the groups of a level before these, unless groups of so many nodes are too large to move."""
    if limit < max_size // 2 * growth:
        label, count = _groups(level, order, min(limit, max_size // 2))
        coarse = _contract(level, label, count)
        _refine(coarse, range(count), limit * growth, growth, max_size, num_clusters, passes)
        level.cluster[:] = [coarse.cluster[group] for group in label]
    _move(level, order, max_size, num_clusters, passes)


def _groups(level: Level, order: Iterable[int], limit: int) -> tuple[list[int], int]:
    """Joins neighbours in the same cluster to larger groups of at most so many nodes."""
    label = [-1] * len(level.size)
    size: list[int] = []
    for i in order:
        if label[i] >= 0:
            continue
        partners = []
        for j, link in level.neighbors[i].items():
            its_size = size[label[j]] if label[j] >= 0 else level.size[j]
            if level.cluster[j] == level.cluster[i] and its_size + level.size[i] <= limit:
                partners.append((-float(link) / its_size, j))
        partner = min(partners)[1] if partners else i
        if label[partner] < 0:
            label[partner] = len(size)
            size.append(level.size[partner])
        if partner != i:
            label[i] = label[partner]
            size[label[i]] += level.size[i]
    return label, len(size)


def _contract(level: Level, label: list[int], count: int) -> Level:
    """The next level, in which group i has become part of group label[i]."""
    coarse = Level([{} for _ in range(count)], [0] * count, [0] * count)
    for i, a in enumerate(label):
        coarse.size[a] += level.size[i]
        coarse.cluster[a] = level.cluster[i]
        links = coarse.neighbors[a]
        for j, link in level.neighbors[i].items():
            if label[j] != a:
                links[label[j]] = links.get(label[j], 0) + link
    return coarse


def _move(level: Level, order: Iterable[int], max_size: int, num_clusters: int, passes: int) -> None:
    """Moves one group after the other, until none moves any more."""
    size, groups = [0] * num_clusters, [0] * num_clusters
    for group, c in enumerate(level.cluster):
        size[c] += level.size[group]
        groups[c] += 1
    for _ in range(passes):
        moved = False
        for i in order:
            own = level.cluster[i]
            links: dict[int, int] = {}
            for j, link in level.neighbors[i].items():
                links[level.cluster[j]] = links.get(level.cluster[j], 0) + link
            room = [c for c in links if c != own and size[c] + level.size[i] <= max_size]
            if not room or groups[own] == 1:
                continue
            best = min(room, key=lambda c: (-links[c], size[c], c))
            if (-links[best], size[best] + level.size[i]) < (-links.get(own, 0), size[own]):
                level.cluster[i] = best
                size[own] -= level.size[i]
                size[best] += level.size[i]
                groups[own] -= 1
                groups[best] += 1
                moved = True
        if not moved:
            return
