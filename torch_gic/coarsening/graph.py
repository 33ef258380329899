"""Stage 1, the graph: undirected, each pair of nodes once in both directions, no node without weight."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.utils import cumsum, scatter

from torch_gic.coarsening.segments import total_in


class UndirectedGraph(NamedTuple):
    r"""A symmetric adjacency in compressed rows: those of node :math:`i` are the entries :obj:`rowptr[i]` to
    :obj:`rowptr[i + 1] - 1`, sorted by column."""

    rowptr: Tensor
    col: Tensor
    weight: Tensor

    @property
    def num_nodes(self) -> int:
        return self.rowptr.numel() - 1

    @property
    def row(self) -> Tensor:
        """The row of each entry."""
        nodes = torch.arange(self.num_nodes, device=self.col.device)
        return torch.repeat_interleave(nodes, self.rowptr.diff(), output_size=self.col.numel())

    @property
    def degree(self) -> Tensor:
        """The row sums."""
        return total_in(self.weight, self.row, self.num_nodes)


def undirected_graph(edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor, num_graphs: int) -> UndirectedGraph:
    r"""The symmetric part :math:`(\mathbf{A} + \mathbf{A}^{\top}) / 2` in float64, divided by the heaviest edge of each
    graph. So clusters do not depend on the unit of the weights, and no sum of them overflows."""
    num_nodes = batch.numel()
    if edge_weight is None:
        edge_weight = torch.ones(edge_index.size(1), device=edge_index.device)
    present = (edge_weight > 0).nonzero().view(-1)
    source, target = edge_index.index_select(1, present)
    weight = edge_weight[present].double()
    heaviest = scatter(weight, batch[source], dim_size=num_graphs, reduce="max")
    weight = weight / heaviest[batch[source]] / 2
    pair, position = torch.unique(torch.cat([source * num_nodes + target, target * num_nodes + source]), return_inverse=True)
    weight = total_in(weight.repeat(2), position, pair.numel())
    row, col = pair // max(num_nodes, 1), pair % max(num_nodes, 1)
    return UndirectedGraph(cumsum(torch.bincount(row, minlength=num_nodes)), col, weight)


def node_volume(graph: UndirectedGraph, batch: Tensor, num_graphs: int) -> Tensor:
    """The degree of each node. A node without an edge has the mean weight of the entries of its graph, or 1."""
    of_entry, degree = batch[graph.row], graph.degree
    total, count = (total_in(value, of_entry, num_graphs) for value in (graph.weight, torch.ones_like(graph.weight)))
    mean = torch.where(count > 0, total / count.clamp(min=1), 1.0)
    return torch.where(degree > 0, degree, mean[batch])
