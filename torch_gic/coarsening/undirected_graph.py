"""The graphs that coarsening looks at: undirected, each pair of vertices once in both directions, no vertex without weight."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.utils import scatter

from torch_gic.kernels.library import OPS, register_reference

OPS.define(
    "undirected_graph(Tensor edge_index, Tensor edge_weight, Tensor batch, SymInt num_graphs)"
    " -> (Tensor, Tensor, Tensor, Tensor)"
)


class UndirectedGraph(NamedTuple):
    r"""The entries :math:`A_{ij} > 0` of a symmetric adjacency, sorted by row and column, and the row sums."""

    row: Tensor
    col: Tensor
    weight: Tensor
    degree: Tensor


def undirected_graph(edge_index: Tensor, edge_weight: Tensor, batch: Tensor, num_graphs: int) -> UndirectedGraph:
    r"""The symmetric part :math:`(\mathbf{A} + \mathbf{A}^{\top}) / 2` in float64, in units of the heaviest edge of each
    graph: clusters do not depend on the unit of the weights, and no sum of them overflows."""
    weight = edge_weight.detach()
    weight = weight if weight.dtype in (torch.float32, torch.float64) else weight.float()  # kernels take no half precision
    return UndirectedGraph(*torch.ops.torch_gic.undirected_graph(edge_index, weight, batch, num_graphs))


@register_reference("undirected_graph")
def reference(edge_index: Tensor, edge_weight: Tensor, batch: Tensor, num_graphs: int) -> tuple[Tensor, ...]:
    num_nodes = batch.numel()
    present = (edge_weight > 0).nonzero().view(-1)
    source, target = edge_index.index_select(1, present)
    weight = edge_weight[present].double()
    heaviest = scatter(weight, batch[source], dim_size=num_graphs, reduce="max")
    weight = weight / heaviest[batch[source]] / 2
    pair, position = torch.unique(torch.cat([source * num_nodes + target, target * num_nodes + source]), return_inverse=True)
    weight = weight.new_zeros(pair.numel()).index_add(0, position, weight.repeat(2))
    row, col = pair // max(num_nodes, 1), pair % max(num_nodes, 1)
    return row, col, weight, weight.new_zeros(num_nodes).index_add(0, row, weight)


@torch.library.register_fake("torch_gic::undirected_graph", lib=OPS)
def _(edge_index: Tensor, edge_weight: Tensor, batch: Tensor, num_graphs: int) -> tuple[Tensor, ...]:
    num_entries = torch.library.get_ctx().new_dynamic_size(min=0)
    row, col = batch.new_empty(num_entries), batch.new_empty(num_entries)
    weight, degree = (edge_weight.new_empty(n, dtype=torch.float64) for n in (num_entries, batch.numel()))
    return row, col, weight, degree


def vertex_volume(graph: UndirectedGraph, batch: Tensor, num_graphs: int) -> Tensor:
    """The degree of each vertex; of one without an edge, the mean weight of the edges of its graph (1 if there are none)."""
    of_edge = batch[graph.row]
    total, count = (
        graph.weight.new_zeros(num_graphs).index_add(0, of_edge, value)
        for value in (graph.weight, torch.ones_like(graph.weight))
    )
    mean = torch.where(count > 0, total / count.clamp(min=1), 1.0)
    return torch.where(graph.degree > 0, graph.degree, mean[batch])
