"""The receptive fields: first which pairs there are, then, for every scale, the weight of each pair.

The reference expands all walks of a scale, several to a pair, and sorts them. Here only new pairs are expanded.
The weight of pair (i, j) is gathered from the pairs (i, m) one step before, over the edges from m to j. This takes memory
linear in the pairs and no atomics, and sums in the order of the reference.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from torch_gic.fields.adjacency_powers import MAX_FLOAT64, expand, reference, sum_duplicates, transitions
from torch_gic.kernels.triton import gpu

PAIRS = 128  # of a program


def adjacency_powers(
    row: Tensor,
    col: Tensor,
    weight: Tensor,
    num_nodes: int,
    num_scales: int,
    max_neighbors: int | None,
    degree: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """See :func:`torch_gic.fields.adjacency_powers.adjacency_powers`."""
    if max_neighbors is not None:  # which pairs are kept depends on the weights of each scale
        return reference(row, col, weight, num_nodes, num_scales, max_neighbors, degree)
    dtype, present = weight.dtype, (weight > 0).nonzero().view(-1)
    row, col, value = sum_duplicates(row[present], col[present], weight[present].double(), num_nodes)
    steps = transitions(row, col, value, num_nodes, num_scales, degree)
    pair = _pairs(row, col, num_nodes, num_scales)
    start, end = pair // max(num_nodes, 1), pair % max(num_nodes, 1)
    nodes = torch.arange(num_nodes + 1, device=row.device)
    ptr = torch.searchsorted(start, nodes)
    by_col, colptr = gpu.segments(col, num_nodes)

    power = value.new_zeros(num_scales, pair.numel())
    power[0, torch.searchsorted(pair, row * num_nodes + col)] = steps[0]
    for k in range(1, num_scales):
        grid = (triton.cdiv(pair.numel(), PAIRS),)
        operands = start, end, ptr, colptr, row[by_col], steps[k][by_col], power[k - 1], power[k], pair.numel()
        gpu.launch(_extend, grid, *operands, LARGEST=MAX_FLOAT64, PAIRS=PAIRS)
    power = power.t().clamp(max=torch.finfo(dtype).max).to(dtype)
    used = (power > 0).any(dim=1).nonzero().view(-1)  # not what underflows
    return torch.stack([end[used], start[used]]), power[used]


def _pairs(row: Tensor, col: Tensor, num_nodes: int, num_scales: int) -> Tensor:
    """The pairs ``start * num_nodes + end``, sorted, of which one can be reached from the other in one to K steps."""
    known = row * num_nodes + col  # in one step; sorted and distinct
    new = known
    for _ in range(1, num_scales):
        source, edge = expand(new % max(num_nodes, 1), row, num_nodes)
        reached = torch.unique(new[source] // max(num_nodes, 1) * num_nodes + col[edge])
        new = reached[~torch.isin(reached, known, assume_unique=True)]
        if new.numel() == 0:
            break
        known = torch.cat([known, new]).sort().values
    return known


@triton.jit
def _extend(start, end, ptr, colptr, source, transition, last, out, num_pairs, LARGEST: tl.constexpr, PAIRS: tl.constexpr):
    """``out[i, j] = sum_m last[i, m] transition[m, j]``; ``source`` is m, by j; a pair (i, m) is found by bisection."""
    pair = tl.program_id(0).to(tl.int64) * PAIRS + tl.arange(0, PAIRS)
    exists = pair < num_pairs
    i = tl.load(start + pair, mask=exists, other=0)
    j = tl.load(end + pair, mask=exists, other=0)
    begin, stop = tl.load(ptr + i, mask=exists, other=0), tl.load(ptr + i + 1, mask=exists, other=0)
    edge, last_edge = tl.load(colptr + j, mask=exists, other=0), tl.load(colptr + j + 1, mask=exists, other=0)
    total = tl.zeros([PAIRS], tl.float64)
    while tl.max(last_edge - edge) > 0:
        more = edge < last_edge
        m = tl.load(source + edge, mask=more, other=0)
        low, high = begin, stop
        while tl.max(high - low) > 0:
            middle = (low + high) // 2
            before = tl.load(end + middle, mask=low < high, other=0) < m
            beyond = (low < high) & before
            high = tl.where(beyond, high, middle)
            low = tl.where(beyond, middle + 1, low)
        found = more & (low < stop)
        found = found & (tl.load(end + low, mask=found, other=0) == m)
        probability = tl.load(last + low, mask=found, other=0)
        total += probability * tl.load(transition + edge, mask=found, other=0)
        edge = tl.minimum(edge + 1, last_edge)
    tl.store(out + pair, tl.minimum(total, LARGEST), mask=exists)
