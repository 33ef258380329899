"""Outputs for nodes of large graphs: for seed nodes, or for all nodes in batches."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.typing import SparseTensor

from torch_gic._checks import check_at_least
from torch_gic.encoding.normalize import soft_bound
from torch_gic.fields import AnyFields, Fields, split_fields, trim_fields
from torch_gic.nn.aggr.gaussian_readout import MAX_DEVIATIONS


class NodeLevel(torch.nn.Module):
    """The parts of the network that compute outputs for nodes. It must not have any ``P``."""

    layers: torch.nn.ModuleList
    norms: torch.nn.ModuleList
    classifier: torch.nn.ModuleList
    act: torch.nn.Module
    dropout: float
    graph_level: bool
    edge_dim: int | None

    def _convolve_seeds(
        self,
        x: Tensor,
        edge_index: Tensor | SparseTensor,
        edge_weight: Tensor | None,
        batch: Tensor,
        fields: AnyFields | None,
        num_seeds: int,
    ) -> Tensor:
        self._check_node_level("num_seeds")
        check_at_least(num_seeds, "num_seeds", 1)
        if num_seeds > x.size(0):
            raise ValueError(f"Expected 'num_seeds' to be at most the {x.size(0)} nodes (got {num_seeds})")
        if len(self.layers) > 0:
            fields = self._fields(self.layers[0], x, edge_index, edge_weight, batch, fields=fields)
            for layer, norm, part in zip(
                self.layers, self.norms, trim_fields(fields, num_seeds, len(self.layers)), strict=True
            ):
                pair = x[: part.num_sources], x[: part.num_nodes]
                x = self._activate(norm, layer(pair, None, fields=part))
        return x[:num_seeds]

    @torch.no_grad()
    def inference(
        self,
        x: Tensor,
        edge_index: Tensor | SparseTensor,
        edge_weight: Tensor | None = None,
        *,
        fields: AnyFields | None = None,
        batch_size: int = 4096,
    ) -> Tensor:
        r"""Computes the output of every node of a large graph, layer by layer over batches of nodes. The network must not have
        any ``P``.

        The result is that of :meth:`forward` in evaluation mode. Memory holds the fields, the features before and after one
        layer, and the encoding of one batch. Only a batch is moved to the device of the model. The graph and the result stay
        where :obj:`x` is.

        Args:
            x (torch.Tensor): The node features.
            edge_index (torch.Tensor or SparseTensor): The edges.
            edge_weight (torch.Tensor, optional): Their weights, finite and non-negative. (default: ones)
            fields (Fields, optional): The fields of the graph. (default: computed)
            batch_size (int, optional): The number of nodes at a time. (default: :obj:`4096`)
        """
        self._check_node_level("inference")
        if self.edge_dim is not None:
            raise NotImplementedError("There is no inference by batches with edge features; call the network on the graph")
        check_at_least(batch_size, "batch_size", 1)
        device, training = next(self.parameters()).device, self.training
        self.eval()
        try:
            whole = self._fields(self.layers[0], x, edge_index, edge_weight, fields=fields) if len(self.layers) > 0 else None
            for layer, norm in zip(self.layers, self.norms, strict=True):
                assert whole is not None
                parts = []
                for start, end, members, part in split_fields(whole, batch_size):
                    pair = x[members].to(device), x[start:end].to(device)
                    parts.append(self._activate(norm, layer(pair, None, fields=part.to(device))).to(x.device))
                x = torch.cat(parts)
            return torch.cat([self._classify(part.to(device)).to(x.device) for part in x.split(batch_size)])
        finally:
            self.train(training)

    def _check_node_level(self, name: str) -> None:
        if self.graph_level:  # an architecture that coarsens ends in a P too
            raise ValueError(f"Expected a network without any P, which has outputs for nodes, for {name!r} (got {self!r})")

    @staticmethod
    def _fields(layer: Any, x: Tensor, edge_index: Any, *graph: Any, fields: Any) -> Fields:
        """The fields of a convolution. All convolutions on the same graph share them."""
        return layer.fields(x, edge_index, *graph) if fields is None else layer.checked(fields, x, edge_index)

    def _activate(self, norm: torch.nn.Module, x: Tensor) -> Tensor:
        if isinstance(norm, torch.nn.Identity):
            return self.act(x)
        return self.act(soft_bound(norm(x), MAX_DEVIATIONS))

    def _classify(self, x: Tensor) -> Tensor:
        for linear in self.classifier[:-1]:
            x = linear(F.dropout(x, self.dropout, self.training)).relu()
        return self.classifier[-1](F.dropout(x, self.dropout, self.training))
