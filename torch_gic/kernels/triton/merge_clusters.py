"""The start of coarsening: one program merges the nodes of a graph, on a block of the links between its clusters.

A cluster is named by one of its nodes, that of the cluster which others joined. Its row and column of the block hold its
links; those of a cluster that has joined another are empty.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch_geometric.utils import cumsum

from torch_gic.coarsening.graph import UndirectedGraph
from torch_gic.coarsening.merge import merge_clusters as reference
from torch_gic.coarsening.segments import ROUNDING
from torch_gic.kernels.triton import gpu
from torch_gic.kernels.triton.graph_blocks import (
    ABSENT,
    LAST,
    REALS,
    WORDS,
    check,
    graph_blocks,
    mix,
    on_grid,
    sum_before,
    without,
    write,
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
    """See :func:`torch_gic.coarsening.merge_clusters`."""
    if max_size > 0:  # partitions of one large graph, which is in no block
        return reference(graph, node_weight, rank, ptr, offset, max_size, rounding)
    if rank.numel() == 0:
        return rank.clone()
    row, col, weight = graph.row, graph.col, graph.weight
    size = ptr.diff()
    blocks = graph_blocks(ptr, size, rank.numel())
    check(blocks, row, col, node_weight)
    of_entry = blocks.graph[row]
    at = blocks.begin[of_entry] + (row - ptr[of_entry]) * size[of_entry] + col - ptr[of_entry]
    link = weight.new_full((blocks.size + 1,), ABSENT.value)  # one more, for what is no link or in no block
    link = link.scatter(0, torch.where(blocks.small[of_entry] & (row != col), at, blocks.size), weight)
    operands = [value.contiguous() for value in (ptr, offset, node_weight, rank)]
    cluster = torch.empty_like(operands[-1])
    scratch = link, blocks.begin, *blocks.scratch()
    gpu.launch(_merge, (size.numel(),), *operands, *scratch, cluster, ROUNDING=rounding, **blocks.tile())
    if not blocks.has_large:
        return cluster
    # The others by the reference, in which a small graph has nothing to do: every node is a cluster.
    start = cumsum(torch.where(blocks.small, size, offset.diff()))
    merged = reference(without(graph, blocks.small[of_entry]), node_weight, rank, ptr, start, max_size, rounding)
    return torch.where(blocks.small[blocks.graph], cluster, merged + (offset - start)[blocks.graph])


@triton.jit
def _merge(
    ptr, offset, node_weight, rank, links, begin, words, reals, cluster,
    ROUNDING: tl.constexpr, MOST: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    graph = tl.program_id(0)
    first = tl.load(ptr + graph)
    n = tl.load(ptr + graph + 1) - first
    n = tl.where(n <= MOST, n, 0)
    first_cluster = tl.load(offset + graph)
    links += tl.load(begin + graph)
    words += first * WORDS
    reals += first * REALS
    i = tl.arange(0, BLOCK).to(tl.int64)
    alive = i < n
    key = tl.load(rank + first + i, mask=alive, other=0)
    mass = tl.load(node_weight + first + i, mask=alive, other=1)
    cluster += first
    write(cluster + i, i, alive)
    excess = n - (tl.load(offset + graph + 1) - first_cluster)
    number = tl.full([], 0, tl.int64)
    while excess > 0:  # ends after n rounds at most: it falls in each of them, or to zero
        partner, change, tie = _preferences(links, mass, key, i, n, words, reals, BLOCK, ROWS)
        if tl.max(partner) >= 0:
            target, turn = _join(partner, change, tie, mass, key, excess, number, i, n, words, reals, ROUNDING, BLOCK, ROWS)
        else:
            target, turn = _pair_up(alive, mass, key, excess, i, n, words, reals, BLOCK, ROWS)
        joins = target != i
        joined = tl.sum(joins.to(tl.int64))
        write(words + 4 * n + i, tl.where(alive, target, -1), i < n)
        write(words + 5 * n + turn, i, joins)
        mass, key = _gather(key, i, n, words, reals, BLOCK)
        for step in range(0, joined):
            a = tl.load(words + 5 * n + step)
            _add_links(links, a, tl.load(words + 4 * n + a), i, n)
        excess = tl.where(joined > 0, excess - joined, 0)  # weights that are no numbers would go on for ever
        alive = alive & (joins == 0)
        _rename(cluster, i, n, words)
        number += 1
    place = sum_before(key, key, tl.zeros_like(i), alive.to(tl.float64), i, n, words, reals, BLOCK, ROWS)
    write(words + 4 * n + i, first_cluster + place.to(tl.int64), i < n)
    _rename(cluster, i, n, words)


@triton.jit
def _rename(cluster, i, n, words):
    name = tl.load(cluster + i, mask=i < n, other=0)
    write(cluster + i, tl.load(words + 4 * n + name, mask=i < n, other=0), i < n)


@triton.jit
def _preferences(links, mass, key, i, n, words, reals, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    """The best partner of each cluster, -1 if there is none. Keeps the weights in memory, and the lowest ranks."""
    cut = tl.zeros([BLOCK], tl.float64)
    for start in range(0, n, ROWS):
        r = start + tl.arange(0, ROWS)
        link = tl.load(links + r[:, None] * n + i[None, :], mask=(r < n)[:, None] & (i < n)[None, :], other=0)
        cut += tl.sum(tl.maximum(link, 0), axis=0)
    ratio = cut / mass
    tl.debug_barrier()
    tl.store(reals + i, ratio, mask=i < n)
    tl.store(reals + n + i, cut, mask=i < n)
    tl.store(reals + 2 * n + i, mass, mask=i < n)
    tl.store(words + 3 * n + i, key, mask=i < n)
    tl.debug_barrier()
    partner = tl.full([BLOCK], -1, tl.int64)
    change = tl.full([BLOCK], LAST, tl.int64)
    tie = tl.full([BLOCK], LAST, tl.int64)
    for start in range(0, n, ROWS):
        r = start + tl.arange(0, ROWS)
        link = tl.load(links + r[:, None] * n + i[None, :], mask=(r < n)[:, None] & (i < n)[None, :], other=ABSENT)
        its_cut = tl.load(reals + n + r, mask=r < n, other=0)[:, None]
        its_mass = tl.load(reals + 2 * n + r, mask=r < n, other=1)[:, None]
        its_key = tl.load(words + 3 * n + r, mask=r < n, other=0)[:, None]
        # Symmetric in both, so that the best pair of all prefers each other.
        apart = tl.load(reals + r, mask=r < n, other=0)[:, None] + ratio[None, :]
        together = (its_cut + cut[None, :] - 2 * link) / (its_mass + mass[None, :])
        its_change = tl.where(link >= 0, on_grid(together - apart), LAST)
        low = tl.min(its_change, axis=0)
        lowest = (link >= 0) & (its_change == low[None, :])
        its_tie = mix((tl.minimum(its_key, key[None, :]) << 32) + tl.maximum(its_key, key[None, :]))
        its_tie = tl.where(lowest, its_tie, LAST)
        low_tie = tl.min(its_tie, axis=0)
        at = tl.min(tl.where(lowest & (its_tie == low_tie[None, :]), r[:, None].to(tl.int64), LAST), axis=0)
        better = (at < n) & ((partner < 0) | (low < change) | ((low == change) & (low_tie < tie)))
        partner, change, tie = tl.where(better, at, partner), tl.where(better, low, change), tl.where(better, low_tie, tie)
    return partner, change, tie


@triton.jit
def _join(
    partner, change, tie, mass, key, excess, number, i, n, words, reals,
    ROUNDING: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The cluster that each cluster joins in this round, itself if it joins none, and the place of those that do."""
    asks = partner >= 0
    write(words + 4 * n + i, partner, i < n)
    mutual = asks & (tl.load(words + 4 * n + partner, mask=asks, other=-1) == i)
    its_mass = tl.load(reals + 2 * n + partner, mask=asks, other=1)
    its_key = tl.load(words + 3 * n + partner, mask=asks, other=0)
    keeps = mutual & ((mass > its_mass) | ((mass == its_mass) & (key < its_key)))
    write(words + 5 * n + i, keeps.to(tl.int64), i < n)
    alone = tl.load(words + 5 * n + partner, mask=asks, other=1) == 0
    stays = keeps | (alone & (mutual == 0) & ((mix(key + (number << 32)) & 1) == 1))
    write(words + 5 * n + i, stays.to(tl.int64), i < n)
    joining = (stays == 0) & (tl.load(words + 5 * n + partner, mask=asks, other=0) == 1)

    gained = sum_before(change, tie, partner, tl.where(joining, mass, 0), i, n, words, reals, BLOCK, ROWS)
    fits = joining & ((gained == 0) | (gained + mass <= (1 + ROUNDING) * its_mass))
    place = sum_before(change, tie, tl.zeros_like(i), fits.to(tl.float64), i, n, words, reals, BLOCK, ROWS)
    half = (tl.sum(fits.to(tl.int64)) + 1) // 2
    return tl.where(fits & (place < tl.minimum(excess, half)), partner, i), place.to(tl.int64)


@triton.jit
def _pair_up(alive, mass, key, excess, i, n, words, reals, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    """Without links, the second lightest cluster joins the lightest, the fourth the third, and so on."""
    bits = mass.to(tl.int64, bitcast=True)  # of positive numbers in the same order
    place = sum_before(bits, key, tl.zeros_like(i), alive.to(tl.float64), i, n, words, reals, BLOCK, ROWS).to(tl.int64)
    write(words + 4 * n + place, i, alive)
    second = alive & (place % 2 == 1) & (place // 2 < excess)
    return tl.where(second, tl.load(words + 4 * n + place - 1, mask=second, other=0), i), place // 2


@triton.jit
def _gather(key, i, n, words, reals, BLOCK: tl.constexpr):
    """Weights and lowest ranks after joining. One after the other, as elsewhere: only so are equal ones equal to the bit."""
    mass = tl.zeros([BLOCK], tl.float64)
    for a in range(0, n):
        here = i == tl.load(words + 4 * n + a)
        mass = tl.where(here, mass + tl.load(reals + 2 * n + a), mass)
        key = tl.where(here, tl.minimum(key, tl.load(words + 3 * n + a)), key)
    return tl.where(mass > 0, mass, 1), key


@triton.jit
def _add_links(links, a, b, i, n):
    """Cluster a gives its links to cluster b."""
    one = tl.load(links + a * n + i, mask=i < n, other=ABSENT)
    two = tl.load(links + b * n + i, mask=i < n, other=ABSENT)
    both = tl.where((one >= 0) | (two >= 0), tl.maximum(one, 0) + tl.maximum(two, 0), ABSENT)
    both = tl.where((i == a) | (i == b), ABSENT, both)
    tl.debug_barrier()
    tl.store(links + b * n + i, both, mask=i < n)
    tl.store(links + i * n + b, both, mask=i < n)
    tl.store(links + a * n + i, ABSENT, mask=i < n)
    tl.store(links + i * n + a, ABSENT, mask=i < n)
    tl.debug_barrier()
