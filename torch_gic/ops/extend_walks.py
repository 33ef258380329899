"""Walks of every length from every vertex: the sparse products behind the receptive fields."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.utils import cumsum

from torch_gic._library import OPS, load_kernels

OPS.define(
    "extend_walks(Tensor row, Tensor col, Tensor transition, SymInt num_nodes, SymInt? max_neighbors)"
    " -> (Tensor, Tensor, Tensor)"
)


def extend_walks(
    row: Tensor, col: Tensor, transition: Tensor, num_nodes: int, max_neighbors: int | None
) -> tuple[Tensor, Tensor, Tensor]:
    r"""The products :math:`\mathbf{T}_1, \; \mathbf{T}_1 \mathbf{T}_2, \; \ldots, \; \mathbf{T}_1 \cdots \mathbf{T}_K` of
    sparse matrices with one pattern, on one shared list of positions.

    Args:
        row (torch.Tensor): The rows of the pattern, sorted.
        col (torch.Tensor): Its columns.
        transition (torch.Tensor): The values of each :math:`\mathbf{T}_k`.
        num_nodes (int): The number of rows and columns.
        max_neighbors (int, optional): After every product keep, in each row, only so many of the largest values;
            of equals those with the lower column.

    Shapes:
        - **input:** pattern :math:`(E^{\prime})`, :math:`(E^{\prime})`, values :math:`(K, E^{\prime})`
        - **output:** rows and columns :math:`(E)`, sorted by row, then column, values :math:`(E, K)`
    """
    if transition.requires_grad:  # the reference is differentiable, the kernel is not
        return reference(row, col, transition, num_nodes, max_neighbors)
    load_kernels()
    return torch.ops.torch_gic.extend_walks(row, col, transition, num_nodes, max_neighbors)


@torch.library.impl(OPS, "extend_walks", "CompositeExplicitAutograd")
def reference(
    row: Tensor, col: Tensor, transition: Tensor, num_nodes: int, max_neighbors: int | None
) -> tuple[Tensor, Tensor, Tensor]:
    """All walks at once, one step after the other."""
    vertices = torch.arange(num_nodes, device=row.device)
    walk = (vertices, vertices, transition.new_ones(num_nodes))
    scales = []
    for value in transition:
        walk = _extend(walk, row, col, value, num_nodes)
        if max_neighbors is not None:
            kept = strongest(walk[0], walk[2], max_neighbors)
            walk = (walk[0][kept], walk[1][kept], walk[2][kept])
        scales.append(walk)

    row, col, value = (torch.cat(parts) for parts in zip(*scales, strict=True))
    sizes = torch.tensor([scale[0].numel() for scale in scales], device=row.device)
    scale = torch.repeat_interleave(torch.arange(len(scales), device=row.device), sizes)
    key, position = torch.unique(row * num_nodes + col, return_inverse=True)
    weight = value.new_zeros(key.numel(), len(scales)).index_put((position, scale), value)
    return key // max(num_nodes, 1), key % max(num_nodes, 1), weight


@torch.library.register_fake("torch_gic::extend_walks", lib=OPS)
def _(
    row: Tensor, col: Tensor, transition: Tensor, num_nodes: int, max_neighbors: int | None
) -> tuple[Tensor, Tensor, Tensor]:
    size = torch.library.get_ctx().new_dynamic_size()
    return row.new_empty(size), row.new_empty(size), transition.new_empty(size, transition.size(0))


def _extend(
    walk: tuple[Tensor, Tensor, Tensor], row: Tensor, col: Tensor, value: Tensor, num_nodes: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The sparse product of ``walk`` and the matrix ``(row, col, value)``."""
    start, end, probability = walk
    degree = torch.bincount(row, minlength=num_nodes)
    rowptr, count = cumsum(degree), degree[end]
    source = torch.repeat_interleave(torch.arange(end.numel(), device=end.device), count)
    offset = torch.arange(source.numel(), device=end.device) - cumsum(count)[source]
    edge = rowptr[end[source]] + offset
    return sum_duplicates(start[source], col[edge], probability[source] * value[edge], num_nodes)


def sum_duplicates(row: Tensor, col: Tensor, value: Tensor, num_nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Entries of equal position add up, in the order in which they stand; the result is sorted by row, then column.

    PyG's ``coalesce`` promises no order of the sums, and with it no result that a kernel could equal to the bit.
    """
    key, position = torch.unique(row * num_nodes + col, return_inverse=True)
    total = value.new_zeros(key.numel()).index_add(0, position, value)
    return key // max(num_nodes, 1), key % max(num_nodes, 1), total


def strongest(row: Tensor, value: Tensor, count: int) -> Tensor:
    """The indices, in order, of the ``count`` largest values of every row; ``row`` is sorted."""
    order = torch.argsort(value, descending=True, stable=True)
    order = order[torch.argsort(row[order], stable=True)]
    rank = torch.arange(row.numel(), device=row.device) - torch.searchsorted(row, row)
    return order[rank < count].sort().values
