"""An order in which the nodes of each graph stand side by side, for a batch vector in any order."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from torch_gic._checks import count_graphs
from torch_gic.kernels.sizes import number_of_graphs


class GraphOrder(NamedTuple):
    """The number of graphs, and which node of the input comes where; :obj:`None` if all stay where they are."""

    num_graphs: int
    order: Tensor | None

    def sort(self, value: Tensor) -> Tensor:
        """Values of the nodes in the new order."""
        return value if self.order is None else value[self.order]

    def restore(self, value: Tensor) -> Tensor:
        """Values of the nodes in the order of the input again."""
        return value if self.order is None else value[self.place]

    def sort_edges(self, edge_index: Tensor) -> Tensor:
        return edge_index if self.order is None else self.place[edge_index]

    @property
    def place(self) -> Tensor:
        """Where each node of the input comes."""
        order = self.order if self.order is not None else torch.empty(0, dtype=torch.long)
        return torch.empty_like(order).scatter_(0, order, torch.arange(order.numel(), device=order.device))


def graph_order(batch: Tensor, edge_index: Tensor, influence: Tensor) -> GraphOrder:
    """Also checks the values of all of them."""
    if torch.compiler.is_compiling():  # a traced model cannot look at values: the operation does
        return GraphOrder(number_of_graphs(batch), torch.argsort(batch, stable=True))
    num_graphs, is_sorted = count_graphs(batch, edge_index, influence)
    return GraphOrder(num_graphs, None if is_sorted else torch.argsort(batch, stable=True))
