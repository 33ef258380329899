"""An order of the vertices that does not depend on how they are numbered."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.utils import cumsum

from torch_gic.ops.undirected_graph import UndirectedGraph

NUM_REFINEMENTS = 3


def structural_rank(graph: UndirectedGraph, influence: Tensor, batch: Tensor) -> Tensor:
    r"""Ranks the vertices of each graph by what they are: influence, neighbours, neighbours of neighbours.

    Coarsening breaks ties by this rank, so that renumbering the vertices of a graph renumbers the result and does nothing
    else, but for vertices that colour refinement (Weisfeiler and Leman, 1968) cannot tell apart.

    Shapes:
        - **output:** ranks :math:`(|\mathcal{V}|)`, from 0 in each graph
    """
    color, weight = mix(_bits(influence)), mix(_bits(graph.weight))
    for _ in range(NUM_REFINEMENTS):
        seen = torch.zeros_like(color).index_add(0, graph.row, mix(color[graph.col] ^ weight))
        color = mix(color + seen)
    order = torch.argsort(color, stable=True)
    order = order[torch.argsort(batch[order], stable=True)]
    first = cumsum(torch.bincount(batch))[batch]
    return torch.empty_like(order).scatter_(0, order, torch.arange(order.numel(), device=order.device)) - first


def mix(value: Tensor) -> Tensor:
    """Scatters int64 values over all int64 values, one to one (the finalizer of SplitMix64)."""
    value = (value ^ _shifted(value, 30)) * -4658895280553007687
    value = (value ^ _shifted(value, 27)) * -7723592293110705685
    return value ^ _shifted(value, 31)


def _shifted(value: Tensor, count: int) -> Tensor:
    return (value >> count) & ((1 << (64 - count)) - 1)  # the shift of torch repeats the sign


def _bits(value: Tensor) -> Tensor:
    # In float32: what summation in another order changes in float64 is rounded away.
    return value.detach().float().contiguous().view(torch.int32).long()
