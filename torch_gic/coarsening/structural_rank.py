"""An order of the vertices that does not depend on how they are numbered."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_gic.coarsening.segments import sorted_by
from torch_gic.coarsening.undirected_graph import UndirectedGraph
from torch_gic.kernels.library import OPS, register_reference

NUM_REFINEMENTS = 8  # ties at three steps were often none at four; what is left after eight is mostly symmetry


OPS.define("structural_rank(Tensor row, Tensor col, Tensor weight, Tensor influence, Tensor ptr) -> Tensor")


def structural_rank(graph: UndirectedGraph, influence: Tensor, ptr: Tensor) -> Tensor:
    r"""Ranks the vertices of each graph by what they are: influence, neighbours, neighbours of neighbours.

    Coarsening breaks ties by this rank, so that renumbering the vertices of a graph renumbers the result and does nothing
    else, but for vertices that colour refinement (Weisfeiler and Leman, 1968) cannot tell apart.

    Args:
        graph (UndirectedGraph): The graphs.
        influence (torch.Tensor): The influence of each vertex.
        ptr (torch.Tensor): Where the vertices of each graph begin, which stand side by side, and end.

    Shapes:
        - **output:** ranks :math:`(|\mathcal{V}|)`, from 0 in each graph
    """
    return torch.ops.torch_gic.structural_rank(graph.row, graph.col, graph.weight, influence.detach().double(), ptr)


@register_reference("structural_rank")
def reference(row: Tensor, col: Tensor, weight: Tensor, influence: Tensor, ptr: Tensor) -> Tensor:
    color, weight = mix(_bits(influence)), mix(_bits(weight))
    for _ in range(NUM_REFINEMENTS):
        color = mix(color.index_add(0, row, mix(color[col] ^ weight)))
    vertex = torch.arange(influence.numel(), device=row.device)
    graphs = torch.arange(ptr.numel() - 1, device=ptr.device)
    batch = torch.repeat_interleave(graphs, ptr.diff(), output_size=vertex.numel())  # known here: else it waits for the device
    return torch.empty_like(vertex).scatter(0, sorted_by(vertex, batch, color), vertex) - ptr[batch]


@torch.library.register_fake("torch_gic::structural_rank", lib=OPS)
def _(row: Tensor, col: Tensor, weight: Tensor, influence: Tensor, ptr: Tensor) -> Tensor:
    return torch.empty_like(influence, dtype=torch.int64)


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
