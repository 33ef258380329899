"""Soft EM: the responsibilities of each graph are a block of their own, nodes by clusters of that graph.

One large graph among small ones does not widen the rows of the others, as in the reference. All sums are in float64, as there.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch_geometric.utils import cumsum

from torch_gic.coarsening.soft.em import take_back
from torch_gic.kernels.triton import gpu
from torch_gic.kernels.triton.graph_blocks import on_grid

TILE = 256  # responsibilities that a program holds
TINY = torch.finfo(torch.float64).tiny  # a cluster may lose all its weight: 0 instead of 0 / 0


class Blocks(NamedTuple):
    """Where the responsibilities of each node are."""

    graph: Tensor  # of each node
    begin: Tensor  # of its row
    width: Tensor  # of its row: the clusters of its graph
    size: int  # of all blocks
    most: int  # clusters of one graph
    num_clusters: int


def soft_em(
    diagonal: Tensor,
    rowptr: Tensor,
    col: Tensor,
    value: Tensor,
    node_weight: Tensor,
    rank: Tensor,
    ptr: Tensor,
    offset: Tensor,
    beta: Tensor,
    cluster: Tensor,
    num_iterations: int,
) -> Tensor:
    """See :func:`torch_gic.coarsening.soft.soft_em`."""
    if cluster.numel() == 0:
        return cluster.clone()
    blocks = _blocks(ptr, offset, rank.numel())
    affinity = diagonal, rowptr, col, value
    p = responsibilities(blocks, *affinity, node_weight, ptr, offset, beta, cluster, num_iterations)
    chosen = torch.zeros_like(cluster)
    tile = _tile(blocks.most)
    grid = (triton.cdiv(chosen.numel(), tile["NODES"]),)
    gpu.launch(_choose, grid, p, blocks.begin, blocks.width, chosen, chosen.numel(), num_warps=8, **tile)
    return take_back(chosen + offset[blocks.graph], cluster, rank, blocks.num_clusters)


def responsibilities(
    blocks: Blocks,
    diagonal: Tensor,
    rowptr: Tensor,
    col: Tensor,
    value: Tensor,
    node_weight: Tensor,
    ptr: Tensor,
    offset: Tensor,
    beta: Tensor,
    cluster: Tensor,
    num_iterations: int,
) -> Tensor:
    """The responsibilities after the last iteration, in the order of the blocks."""
    graph, begin, width, size, most, num_clusters = blocks
    num_nodes = cluster.numel()
    diagonal, rowptr, col, value = (tensor.contiguous() for tensor in (diagonal, rowptr, col, value))
    node_weight, ptr, offset, beta = (tensor.contiguous() for tensor in (node_weight, ptr, offset, beta))
    p = node_weight.new_zeros(size).index_fill(0, begin + cluster - offset[graph], 1)
    product, sums = torch.empty_like(p), node_weight.new_empty(3, num_clusters)
    tile = _tile(most)
    across, down = triton.cdiv(most, tile["CLUSTERS"]), triton.cdiv(num_nodes, tile["NODES"])
    of_node = begin, width, node_weight, diagonal
    for _ in range(num_iterations):
        gpu.launch(_multiply, (down, across), p, *of_node, rowptr, col, value, product, num_nodes, **tile)
        gpu.launch(_sum, (ptr.numel() - 1, across), p, product, begin, node_weight, ptr, offset, *sums, TINY=TINY, **tile)
        gpu.launch(_assign, (down,), p, product, *of_node, graph, offset, beta, *sums, num_nodes, **tile)
    return p


def _blocks(ptr: Tensor, offset: Tensor, num_nodes: int) -> Blocks:
    size, width = ptr.diff(), offset.diff()
    first = cumsum(size * width)
    graph = torch.repeat_interleave(torch.arange(size.numel(), device=ptr.device), size, output_size=num_nodes)
    place = torch.arange(num_nodes, device=ptr.device) - ptr[graph]
    # Waits for the device: this is how much memory is needed.
    numbers = torch.stack([first[-1], width.max(), offset[-1]]).tolist()
    return Blocks(graph, first[graph] + place * width[graph], width[graph], *numbers)


def _tile(most: int) -> dict[str, int]:
    clusters = min(triton.next_power_of_2(most), TILE)
    return {"NODES": TILE // clusters, "CLUSTERS": clusters}


@triton.jit
def _multiply(
    p, begin, width, weight, diagonal, rowptr, col, value, product, num_nodes, NODES: tl.constexpr, CLUSTERS: tl.constexpr
):
    """``B = K diag(w) P``, entry after entry of the kernel."""
    i = tl.program_id(0).to(tl.int64) * NODES + tl.arange(0, NODES)
    c = tl.program_id(1) * CLUSTERS + tl.arange(0, CLUSTERS)
    known = i < num_nodes
    first = tl.load(begin + i, mask=known, other=0)
    count = tl.load(width + i, mask=known, other=0)
    inside = c[None, :] < count[:, None]
    at = first[:, None] + c[None, :]
    entry, last = tl.load(rowptr + i, mask=known, other=0), tl.load(rowptr + i + 1, mask=known, other=0)
    total = tl.zeros([NODES, CLUSTERS], tl.float64)
    for _ in range(0, tl.max(last - entry)):
        more = entry < last
        j = tl.load(col + entry, mask=more, other=0)
        factor = tl.load(value + entry, mask=more, other=0) * tl.load(weight + j, mask=more, other=0)
        of_other = tl.load(begin + j, mask=more, other=0)[:, None] + c[None, :]
        total += factor[:, None] * tl.load(p + of_other, mask=more[:, None] & inside, other=0)
        entry = tl.minimum(entry + 1, last)
    factor = tl.load(diagonal + i, mask=known, other=0) * tl.load(weight + i, mask=known, other=0)
    total += factor[:, None] * tl.load(p + at, mask=inside, other=0)
    tl.store(product + at, total, mask=inside)


@triton.jit
def _sum(
    p, product, begin, weight, ptr, offset, mass, spread, log_pi,
    TINY: tl.constexpr, NODES: tl.constexpr, CLUSTERS: tl.constexpr,
):  # fmt: skip
    """What an iteration sums over the nodes of a graph."""
    graph = tl.program_id(0)
    c = tl.program_id(1) * CLUSTERS + tl.arange(0, CLUSTERS)
    first, last = tl.load(ptr + graph), tl.load(ptr + graph + 1)
    first_cluster = tl.load(offset + graph)
    inside = c < tl.load(offset + graph + 1) - first_cluster
    s = tl.zeros([CLUSTERS], tl.float64)
    wpb = tl.zeros([CLUSTERS], tl.float64)
    count = tl.zeros([CLUSTERS], tl.float64)
    for start in range(first, last, NODES):
        i = start + tl.arange(0, NODES)
        at = tl.load(begin + i, mask=i < last, other=0)[:, None] + c[None, :]
        known = (i < last)[:, None] & inside[None, :]
        own = tl.load(p + at, mask=known, other=0)
        weighted = tl.load(weight + i, mask=i < last, other=0)[:, None] * own
        s += tl.sum(weighted, axis=0)
        wpb += tl.sum(weighted * tl.load(product + at, mask=known, other=0), axis=0)
        count += tl.sum(own, axis=0)
    s = tl.maximum(s, TINY)
    tl.store(mass + first_cluster + c, s, mask=inside)
    tl.store(spread + first_cluster + c, wpb / s / s, mask=inside)
    tl.store(log_pi + first_cluster + c, tl.log(tl.maximum(count / tl.maximum(last - first, 1), TINY)), mask=inside)


@triton.jit
def _assign(
    p, product, begin, width, weight, diagonal, graph, offset, beta, mass, spread, log_pi, num_nodes,
    NODES: tl.constexpr, CLUSTERS: tl.constexpr,
):  # fmt: skip
    """The softmax over the clusters: their highest exponent and sum first, then the responsibilities."""
    i = tl.program_id(0).to(tl.int64) * NODES + tl.arange(0, NODES)
    known = i < num_nodes
    first = tl.load(begin + i, mask=known, other=0)
    count = tl.load(width + i, mask=known, other=0)
    g = tl.load(graph + i, mask=known, other=0)
    first_cluster = tl.load(offset + g)
    factor = tl.load(beta + g) / 2 * tl.load(weight + i, mask=known, other=0)
    k = tl.load(diagonal + i, mask=known, other=0)
    most = tl.max(count)
    highest = tl.full([NODES], -float("inf"), tl.float64)
    total = tl.zeros([NODES], tl.float64)
    for start in range(0, most, CLUSTERS):
        e = _exponents(product, mass, spread, log_pi, first, first_cluster, count, factor, k, start, CLUSTERS)
        higher = tl.maximum(highest, tl.max(e, axis=1))
        base = tl.where(known, higher, 0)
        total = total * tl.exp(tl.where(known, highest, 0) - base) + tl.sum(tl.exp(e - base[:, None]), axis=1)
        highest = higher
    base, total = tl.where(known, highest, 0), tl.where(known, total, 1)
    for start in range(0, most, CLUSTERS):
        e = _exponents(product, mass, spread, log_pi, first, first_cluster, count, factor, k, start, CLUSTERS)
        c = start + tl.arange(0, CLUSTERS)
        own = tl.exp(e - base[:, None]) / total[:, None]
        tl.store(p + first[:, None] + c[None, :], own, mask=c[None, :] < count[:, None])


@triton.jit
def _exponents(product, mass, spread, log_pi, first, first_cluster, count, factor, k, start, CLUSTERS: tl.constexpr):
    c = start + tl.arange(0, CLUSTERS)
    inside = c[None, :] < count[:, None]
    b = tl.load(product + first[:, None] + c[None, :], mask=inside, other=0)
    at = first_cluster[:, None] + c[None, :]
    distance = k[:, None] - 2 * b / tl.load(mass + at, mask=inside, other=1) + tl.load(spread + at, mask=inside, other=0)
    exponent = tl.load(log_pi + at, mask=inside, other=0) - factor[:, None] * distance
    return tl.where(inside, exponent, -float("inf"))


@triton.jit
def _choose(p, begin, width, chosen, num_nodes, NODES: tl.constexpr, CLUSTERS: tl.constexpr):
    """The likeliest cluster, of equals on the grid the first."""
    i = tl.program_id(0).to(tl.int64) * NODES + tl.arange(0, NODES)
    known = i < num_nodes
    first = tl.load(begin + i, mask=known, other=0)
    count = tl.load(width + i, mask=known, other=0)
    best = tl.full([NODES], -1, tl.int64)
    at = tl.zeros([NODES], tl.int64)
    most = tl.max(count)
    for start in range(0, most, CLUSTERS):
        c = start + tl.arange(0, CLUSTERS)
        inside = c[None, :] < count[:, None]
        own = tl.load(p + first[:, None] + c[None, :], mask=inside, other=0)
        steps = tl.where(inside, on_grid(own), -1)
        here = tl.max(steps, axis=1)
        where = tl.min(tl.where(steps == here[:, None], c[None, :].to(tl.int64), most), axis=1)
        at = tl.where(here > best, where, at)
        best = tl.maximum(best, here)
    tl.store(chosen + i, at, mask=known)
