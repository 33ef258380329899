"""Normalised powers of a sparse adjacency, all on one list of pairs: what the kernel of the receptive fields computes."""

from __future__ import annotations

from functools import reduce
from typing import Any

import torch
from torch import Tensor
from torch_geometric.utils import cumsum

from torch_gic.kernels.library import OPS, is_transformed, register_reference
from torch_gic.kernels.operands import check_numbers
from torch_gic.kernels.sizes import new_size

OPS.define(
    "adjacency_powers(Tensor row, Tensor col, Tensor weight, SymInt num_nodes, SymInt num_scales, SymInt? max_neighbors,"
    " Tensor? degree=None) -> (Tensor, Tensor)"
)
MAX_FLOAT64 = torch.finfo(torch.float64).max  # in place of infinity, which times zero is NaN


def adjacency_powers(
    row: Tensor,
    col: Tensor,
    weight: Tensor,
    num_nodes: int,
    num_scales: int,
    max_neighbors: int | None,
    degree: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    r"""The matrices :math:`\mathbf{A}^k \, \mathrm{diag}(\mathbf{A}^k \mathbf{1})^{-1}` for :math:`k = 1, \ldots, K`, by the
    recursion of :func:`~torch_gic.receptive_fields`, which says what :obj:`max_neighbors` does.

    Args:
        row (torch.Tensor): The rows of the entries of :math:`\mathbf{A}`, in any order; entries of one position add up.
        col (torch.Tensor): Their columns.
        weight (torch.Tensor): Their values, finite and non-negative, float32 or float64, which the result will be too.
            The recursion itself runs in float64.
        num_nodes (int): The number of rows and columns.
        num_scales (int): The number of powers :math:`K`.
        max_neighbors (int, optional): The largest number of pairs per row.
        degree (torch.Tensor, optional): What to divide by in place of :math:`\mathbf{A}^k \mathbf{1}`, in float64.

    Shapes:
        - **input:** :math:`(E^{\prime})`, :math:`(E^{\prime})`, :math:`(E^{\prime})`, degrees :math:`(|\mathcal{V}|, K)`
        - **output:** pairs :math:`(2, E)`, row 0 the column and row 1 the row of the entry, sorted by row, then column, and
          values :math:`(E, K)`
    """
    if weight.requires_grad or is_transformed():  # the reference is differentiable, the kernel is not
        return _differentiable(row, col, weight, num_nodes, num_scales, max_neighbors, degree)
    return torch.ops.torch_gic.adjacency_powers(row, col, weight, num_nodes, num_scales, max_neighbors, degree)


@torch.compiler.disable  # of its exponents, Inductor makes code that does not compile
def _differentiable(row: Tensor, col: Tensor, weight: Tensor, *settings: Any) -> tuple[Tensor, Tensor]:
    check_numbers(weight, "edge_weight", "finite and non-negative")  # a compiled model cannot check it anywhere else
    return reference(row, col, weight, *settings)


@register_reference("adjacency_powers")
def reference(
    row: Tensor,
    col: Tensor,
    weight: Tensor,
    num_nodes: int,
    num_scales: int,
    max_neighbors: int | None,
    degree: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """All rows at once, one power after the other: T_1, T_1 T_2, ..., T_1 ... T_K."""
    dtype, present = weight.dtype, weight > 0
    row, col, value = sum_duplicates(row[present], col[present], weight[present].double(), num_nodes)
    steps = transitions(row, col, value, num_nodes, num_scales, degree)
    if max_neighbors is not None:
        followed = _strongest(row, steps[0], max_neighbors)  # the edges that walks may take
        row, col, steps = row[followed], col[followed], [step[followed] for step in steps]

    nodes = torch.arange(num_nodes, device=row.device)
    walk = (nodes, nodes, value.new_ones(num_nodes))
    scales = []
    for step in steps:
        walk = _extend(walk, row, col, step, num_nodes)
        if max_neighbors is not None:
            kept = _strongest(walk[0], walk[2], max_neighbors)
            walk = (walk[0][kept], walk[1][kept], walk[2][kept])
        scales.append(walk)

    row, col, value = (torch.cat(parts) for parts in zip(*scales, strict=True))
    sizes = torch.tensor([scale[0].numel() for scale in scales], device=row.device)
    scale = torch.repeat_interleave(torch.arange(num_scales, device=row.device), sizes)
    key, position = torch.unique(row * num_nodes + col, return_inverse=True)
    power = value.new_zeros(key.numel(), num_scales).index_put((position, scale), value)
    row, col = key // max(num_nodes, 1), key % max(num_nodes, 1)
    if max_neighbors is not None:
        total = reduce(torch.add, power.unbind(1))  # in this order
        kept = _strongest(row, total, max_neighbors)
        row, col, power = row[kept], col[kept], power[kept]
    power = power.clamp(max=torch.finfo(dtype).max).to(dtype)
    used = (power > 0).any(dim=1)
    return torch.stack([col[used], row[used]]), power[used]


@torch.library.register_fake("torch_gic::adjacency_powers", lib=OPS)
def _(
    row: Tensor,
    col: Tensor,
    weight: Tensor,
    num_nodes: int,
    num_scales: int,
    max_neighbors: int | None,
    degree: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    size = new_size()
    return row.new_empty(2, size), weight.new_empty(size, num_scales)


def transitions(
    row: Tensor, col: Tensor, value: Tensor, num_nodes: int, num_scales: int, given: Tensor | None = None
) -> list[Tensor]:
    """The entries of ``T_k = diag(d_{k-1}) A diag(d_k)^-1`` with ``d_k = A d_{k-1}``, or as given, and ``d_0 = 1``.

    Where no walk ends, ``d_k`` is zero and is replaced by 1: the edges that leave such a node still count. Each ``d`` is
    stored as a fraction and a power of two. So nothing overflows and, unlike with logarithms, whole numbers stay exact.
    """
    fraction, exponent = torch.frexp(value)
    degree, power = torch.frexp(value.new_ones(num_nodes))
    transitions = []
    for k in range(num_scales):
        last, last_power = degree, power
        if given is not None:
            degree, power = torch.frexp(given[:, k])
        else:
            term_power = torch.where(last[col] > 0, exponent + last_power[col], torch.iinfo(power.dtype).min // 2)
            highest = torch.full_like(power, torch.iinfo(power.dtype).min // 2)
            highest = highest.scatter_reduce(0, row, term_power, "amax")
            terms = torch.ldexp(fraction * last[col], (term_power - highest[row]).double())
            degree, power = torch.frexp(torch.zeros_like(last).index_add(0, row, terms))
            power = torch.where(degree > 0, power + highest, 0)

        (top, top_power), (bottom, bottom_power) = _or_one(last, last_power), _or_one(degree, power)
        shift = (exponent + top_power[row] - bottom_power[col]).double()
        transitions.append(torch.ldexp(fraction * top[row] / bottom[col], shift).clamp(max=MAX_FLOAT64))
    return transitions


def _or_one(degree: Tensor, power: Tensor) -> tuple[Tensor, Tensor]:
    reached = degree > 0
    return torch.where(reached, degree, 0.5), torch.where(reached, power, 1)


def _extend(
    walk: tuple[Tensor, Tensor, Tensor], row: Tensor, col: Tensor, value: Tensor, num_nodes: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The sparse product of ``walk`` and the matrix ``(row, col, value)``."""
    start, end, probability = walk
    source, edge = expand(end, row, num_nodes)
    return sum_duplicates(start[source], col[edge], probability[source] * value[edge], num_nodes)


def expand(end: Tensor, row: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """All extensions of walks by one edge: the position of the walk, and that of the edge. Rows of edges are sorted."""
    rowptr = torch.searchsorted(row, torch.arange(num_nodes + 1, device=row.device))
    count = rowptr.diff()[end]
    source = torch.repeat_interleave(torch.arange(end.numel(), device=end.device), count)
    offset = torch.arange(source.numel(), device=end.device) - cumsum(count)[source]
    return source, rowptr[end[source]] + offset


def sum_duplicates(row: Tensor, col: Tensor, value: Tensor, num_nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Entries of equal position add up, in the order in which they stand; the result is sorted by row, then column.

    PyG's ``coalesce`` promises no order of the sums. Kernels could then not give the same bits.
    """
    key, position = torch.unique(row * num_nodes + col, return_inverse=True)
    total = value.new_zeros(key.numel()).index_add(0, position, value).clamp(max=MAX_FLOAT64)
    return key // max(num_nodes, 1), key % max(num_nodes, 1), total


def _strongest(row: Tensor, value: Tensor, count: int) -> Tensor:
    """The sorted indices of the ``count`` largest values of every row. Ties go to the first. ``row`` must be sorted."""
    order = torch.argsort(value, descending=True, stable=True)
    order = order[torch.argsort(row[order], stable=True)]
    rank = torch.arange(row.numel(), device=row.device) - torch.searchsorted(row, row)
    return order[rank < count].sort().values
