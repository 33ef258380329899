"""Stage 2, the ranks: an order of the nodes that does not depend on how they are numbered."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_gic.coarsening.graph import UndirectedGraph
from torch_gic.coarsening.segments import sorted_by

NUM_REFINEMENTS = 8  # ties at three steps were often none at four; what is left after eight is mostly symmetry


def structural_rank(
    graph: UndirectedGraph, influence: Tensor, batch: Tensor, num_refinements: int = NUM_REFINEMENTS
) -> Tensor:
    r"""Ranks the nodes of each graph by their influence, their neighbours, the neighbours of these, and so on.

    Coarsening breaks ties by this rank. So another numbering of the nodes gives the same clusters. The exception are nodes
    that colour refinement (Weisfeiler and Leman, 1968) cannot tell apart.

    Args:
        graph (UndirectedGraph): The graphs.
        influence (torch.Tensor): The influence of each node.
        batch (torch.Tensor): The graph of each node, sorted.
        num_refinements (int, optional): The number of steps up to which neighbours count. (default: :obj:`8`)

    Shapes:
        - **output:** ranks :math:`(|\mathcal{V}|)`, from 0 in each graph
    """
    row, color, weight = graph.row, mix(_bits(influence)), mix(_bits(graph.weight))
    for _ in range(num_refinements):
        color = mix(color.index_add(0, row, mix(color[graph.col] ^ weight)))
    node = torch.arange(influence.numel(), device=row.device)
    first = torch.searchsorted(batch, batch)  # of the nodes of the same graph
    return torch.empty_like(node).scatter(0, sorted_by(node, batch, color), node) - first


def mix(value: Tensor) -> Tensor:
    """Scatters int64 values over all int64 values, one to one (the finalizer of SplitMix64)."""
    value = (value ^ _shifted(value, 30)) * -4658895280553007687
    value = (value ^ _shifted(value, 27)) * -7723592293110705685
    return value ^ _shifted(value, 31)


def _shifted(value: Tensor, count: int) -> Tensor:
    return (value >> count) & ((1 << (64 - count)) - 1)  # the shift of torch repeats the sign


def _bits(value: Tensor) -> Tensor:
    # In float32: what summation in another order changes in float64 is rounded away.
    return value.float().contiguous().view(torch.int32).long()
