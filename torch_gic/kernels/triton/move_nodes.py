"""The end of coarsening: one program moves the nodes of a graph, on a block of their links, clusters by nodes."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from torch_gic.coarsening.graph import UndirectedGraph
from torch_gic.coarsening.move import MOST_TOGETHER
from torch_gic.coarsening.move import move_nodes as reference
from torch_gic.coarsening.segments import ROUNDING
from torch_gic.kernels.triton import gpu
from torch_gic.kernels.triton.graph_blocks import (
    ABSENT,
    LAST,
    REALS,
    WORDS,
    check,
    graph_blocks,
    on_grid,
    sum_before,
    without,
    write,
)


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
    """See :func:`torch_gic.coarsening.move_nodes`."""
    settings = num_iterations, most_together, rounding
    moved = cluster.clone(memory_format=torch.contiguous_format)
    if rank.numel() == 0:
        return moved
    blocks = graph_blocks(ptr, offset.diff(), rank.numel())
    row = graph.row
    check(blocks, row, graph.col, node_weight)
    inside = (cluster >= offset[blocks.graph]) & (cluster < offset[blocks.graph + 1])
    torch._assert_async(inside.all(), "Expected 'cluster' to lie in the clusters of its graph")
    operands = [value.contiguous() for value in (ptr, offset, *graph, node_weight, rank)]
    scratch = node_weight.new_full((blocks.size,), ABSENT.value), blocks.begin, *blocks.scratch()
    constants = {"MOST_TOGETHER": most_together, "ROUNDING": rounding, **blocks.tile()}
    gpu.launch(_move, (ptr.numel() - 1,), *operands, *scratch, moved, num_iterations, **constants)
    if not blocks.has_large:
        return moved
    # The others by the reference, in which nodes of small graphs stay where they are, as they have no neighbours.
    others = without(graph, blocks.small[blocks.graph[row]])
    return reference(others, node_weight, rank, ptr, offset, moved, *settings)


@triton.jit
def _move(
    ptr, offset, rowptr, col, weight, node_weight, rank, links, begin, words, reals, cluster, num_iterations,
    MOST_TOGETHER: tl.constexpr, ROUNDING: tl.constexpr, MOST: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    graph = tl.program_id(0)
    first = tl.load(ptr + graph)
    n = tl.load(ptr + graph + 1) - first
    n = tl.where(n <= MOST, n, 0)
    first_cluster = tl.load(offset + graph)
    k = tl.where(n > 0, tl.load(offset + graph + 1) - first_cluster, 0)
    links += tl.load(begin + graph)
    words += first * WORDS
    reals += first * REALS
    i = tl.arange(0, BLOCK).to(tl.int64)
    origin = tl.load(cluster + first + i, mask=i < n, other=0) - first_cluster
    w = tl.load(node_weight + first + i, mask=i < n, other=0)
    place = tl.load(rank + first + i, mask=i < n, other=0)
    entry = tl.load(rowptr + first + i, mask=i < n, other=0)
    last = tl.load(rowptr + first + i + 1, mask=i < n, other=0)
    left = tl.full([], 0, tl.int64) + num_iterations
    while left > 0:
        write(words + 3 * n + i, origin, i < n)
        degree, own = _link(links, col, weight, first, entry, last, origin, i, n, words, BLOCK)
        cut, mass = _measure(degree - own, w, i, n, words, reals, BLOCK, ROWS)
        tl.debug_barrier()
        tl.store(reals + n + i, cut, mask=i < k)
        tl.store(reals + 2 * n + i, mass, mask=i < k)
        tl.debug_barrier()
        to, change, link = _wishes(links, degree, own, w, origin, k, i, n, reals, ROUNDING, BLOCK, ROWS)
        moving = tl.min(change) < 0
        if moving:
            group = _served(to, change, rank + first, origin, i, n, words, BLOCK, ROWS)
            goes = _together(
                group,
                to,
                change,
                place,
                link,
                degree,
                own,
                w,
                origin,
                i,
                n,
                words,
                reals,
                MOST_TOGETHER,
                ROUNDING,
                BLOCK,
                ROWS,
            )
            origin = tl.where(goes, to, origin)
        left = tl.where(moving, left - 1, 0)
    tl.store(cluster + first + i, first_cluster + origin, mask=i < n)


@triton.jit
def _link(links, col, weight, first, entry, last, origin, i, n, words, BLOCK: tl.constexpr):
    """Adds up the links of each node to each cluster, neighbour after neighbour. Returns all, and those to its own."""
    degree = tl.zeros([BLOCK], tl.float64)
    for _ in range(0, tl.max(last - entry)):
        j = tl.load(col + entry, mask=entry < last, other=0) - first
        is_link = (entry < last) & (i != j)
        at = links + tl.load(words + 3 * n + j, mask=is_link, other=0) * n + i
        link = tl.load(weight + entry, mask=is_link, other=0)
        degree += link
        write(at, tl.maximum(tl.load(at, mask=is_link, other=0), 0) + link, is_link)
        entry = tl.minimum(entry + 1, last)
    return degree, tl.maximum(tl.load(links + origin * n + i, mask=i < n, other=0), 0)


@triton.jit
def _measure(outside, w, i, n, words, reals, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    """Cut and weight of each cluster."""
    tl.debug_barrier()
    tl.store(reals + i, outside, mask=i < n)
    tl.store(reals + n + i, w, mask=i < n)
    tl.debug_barrier()
    cut = tl.zeros([BLOCK], tl.float64)
    mass = tl.zeros([BLOCK], tl.float64)
    for start in range(0, n, ROWS):
        r = start + tl.arange(0, ROWS)
        inside = tl.load(words + 3 * n + r, mask=r < n, other=-1)[:, None] == i[None, :]
        cut += tl.sum(tl.where(inside, tl.load(reals + r, mask=r < n, other=0)[:, None], 0), axis=0)
        mass += tl.sum(tl.where(inside, tl.load(reals + n + r, mask=r < n, other=0)[:, None], 0), axis=0)
    return cut, mass


@triton.jit
def _wishes(
    links, degree, own, w, origin, k, i, n, reals, ROUNDING: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr
):  # fmt: skip
    """Where each node wants to, what that changes (0 if it wants to stay) and its links there. Clears all links."""
    cut = tl.load(reals + n + origin, mask=i < n, other=0)
    mass = tl.load(reals + 2 * n + origin, mask=i < n, other=1)
    able = (i < n) & (mass - w > ROUNDING * mass)
    leaving = (cut - degree + 2 * own) / tl.where(able, mass - w, 1) - cut / mass
    to = tl.zeros([BLOCK], tl.int64)
    change = tl.zeros([BLOCK], tl.int64)
    chosen = tl.zeros([BLOCK], tl.float64)
    for start in range(0, k, ROWS):
        c = start + tl.arange(0, ROWS).to(tl.int64)
        at = links + c[:, None] * n + i[None, :]
        exists = (c < k)[:, None] & (i < n)[None, :]
        link = tl.load(at, mask=exists, other=ABSENT)
        write(at, tl.full([ROWS, BLOCK], ABSENT, tl.float64), exists)
        its_cut = tl.load(reals + n + c, mask=c < k, other=0)[:, None]
        its_mass = tl.load(reals + 2 * n + c, mask=c < k, other=1)[:, None]
        coming = (its_cut + degree[None, :] - 2 * link) / (its_mass + w[None, :])
        useful = (link >= 0) & able[None, :] & (c[:, None] != origin[None, :])
        its_change = tl.where(useful, on_grid(leaving[None, :] + coming - its_cut / its_mass), 0)
        low = tl.min(its_change, axis=0)
        at_low = tl.min(tl.where(its_change == low[None, :], c[:, None], LAST), axis=0)
        its_link = tl.sum(tl.where(c[:, None] == at_low[None, :], link, 0), axis=0)
        better = low < change
        to, change, chosen = tl.where(better, at_low, to), tl.where(better, low, change), tl.where(better, its_link, chosen)
    return to, change, chosen


@triton.jit
def _served(to, change, rank, origin, i, n, words, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    """Whose pair of clusters is served: its best wish is the best of both, among all wishes to and from them."""
    tl.debug_barrier()
    tl.store(words + 4 * n + i, to, mask=i < n)
    tl.store(words + 5 * n + i, change, mask=i < n)
    tl.debug_barrier()
    best = tl.full([BLOCK], -1, tl.int64)  # of each cluster, the node
    lowest = tl.zeros([BLOCK], tl.int64)
    lowest_rank = tl.full([BLOCK], LAST, tl.int64)
    for start in range(0, n, ROWS):
        r = start + tl.arange(0, ROWS).to(tl.int64)
        its_change = tl.load(words + 5 * n + r, mask=r < n, other=0)[:, None]
        ends = tl.load(words + 3 * n + r, mask=r < n, other=-1), tl.load(words + 4 * n + r, mask=r < n, other=-1)
        touches = (its_change < 0) & ((ends[0][:, None] == i[None, :]) | (ends[1][:, None] == i[None, :]))
        low = tl.min(tl.where(touches, its_change, 0), axis=0)
        its_rank = tl.load(rank + r, mask=r < n, other=0)[:, None]
        its_rank = tl.where(touches & (its_change == low[None, :]), its_rank, LAST)
        low_rank = tl.min(its_rank, axis=0)
        at = tl.min(tl.where(its_rank == low_rank[None, :], r[:, None], LAST), axis=0)
        better = (low < lowest) | ((low == lowest) & (low < 0) & (low_rank < lowest_rank))
        best = tl.where(better, at, best)
        lowest, lowest_rank = tl.where(better, low, lowest), tl.where(better, low_rank, lowest_rank)
    write(words + 6 * n + i, best, i < n)
    wishes = change < 0
    front = tl.load(words + 6 * n + origin, mask=wishes, other=0)
    same = (tl.load(words + 3 * n + front, mask=wishes, other=-1) == origin) & (front >= 0)
    same = same & (tl.load(words + 4 * n + front, mask=wishes, other=-1) == to)
    return wishes & same & (tl.load(words + 6 * n + to, mask=wishes, other=-1) == front)


@triton.jit
def _together(
    group, to, change, place, link, degree, own, w, origin, i, n, words, reals,
    MOST_TOGETHER: tl.constexpr, ROUNDING: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Of nodes with the same wish, the best so many whose moving lowers the objective the most."""
    position = sum_before(change, place, origin, group.to(tl.float64), i, n, words, reals, BLOCK, ROWS)
    group = group & (position < MOST_TOGETHER)
    moved = w + sum_before(change, place, origin, tl.where(group, w, 0), i, n, words, reals, BLOCK, ROWS)
    leaving = 2 * own - degree
    leaving += sum_before(change, place, origin, tl.where(group, leaving, 0), i, n, words, reals, BLOCK, ROWS)
    coming = degree - 2 * link
    coming += sum_before(change, place, origin, tl.where(group, coming, 0), i, n, words, reals, BLOCK, ROWS)

    cut, its_cut = tl.load(reals + n + origin, mask=group, other=0), tl.load(reals + n + to, mask=group, other=0)
    mass, its_mass = tl.load(reals + 2 * n + origin, mask=group, other=0), tl.load(reals + 2 * n + to, mask=group, other=1)
    possible = group & (mass - moved > ROUNDING * mass)
    objective = (cut + leaving) / tl.where(possible, mass - moved, 1) + (its_cut + coming) / (its_mass + moved)
    objective, position = on_grid(objective), position.to(tl.int64)
    better = sum_before(objective, position, origin, possible.to(tl.float64), i, n, words, reals, BLOCK, ROWS)
    write(words + 5 * n + origin, position, possible & (better == 0))
    return group & (position <= tl.load(words + 5 * n + origin, mask=group, other=-1))
