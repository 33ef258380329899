"""The projection: what the mixture of a layer sees of nodes, or of edges and the nodes that they come from."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.nn import Linear

from torch_gic.nn.conv.bounded_norm import BoundedNorm
from torch_gic.nn.conv.outlier_clamp import OutlierClamp


class Edges(NamedTuple):
    """Edges as members of fields: the source and the features of each edge."""

    source: Tensor
    attr: Tensor


class Prepared(NamedTuple):
    """Clamped features of the nodes, what the mixture sees, and clamped features of the edges, if there are any."""

    x: Tensor
    v: Tensor
    edge_attr: Tensor | None = None


class Projection(torch.nn.Module):
    r"""Computes what the mixture sees: scales the features to equal units, projects and normalises them

    .. math::
        \mathbf{v}_j = \mathrm{norm}(\mathbf{W}_v \, \hat{\mathbf{x}}_j / \mathbf{s})
        \qquad \text{or} \qquad
        \mathbf{v}_e = \mathrm{norm}(\mathbf{W}_v \, \hat{\mathbf{x}}_{j(e)} / \mathbf{s}
        + \mathbf{W}_e \, \hat{\mathbf{e}} / \mathbf{s}_e).

    :math:`\hat{\mathbf{x}}` and :math:`\hat{\mathbf{e}}` are features of nodes and edges after
    :class:`~torch_gic.nn.OutlierClamp`, and :math:`\mathbf{s}` their deviations. :math:`\mathrm{norm}` is
    :class:`~torch_gic.nn.BoundedNorm`.

    Args:
        in_channels (int): Size of each feature vector, or :obj:`-1` to take it from the first input.
        hidden_channels (int): Size of :math:`\mathbf{v}`.
        edge_dim (int, optional): Size of each edge feature vector. (default: :obj:`None`)
    """

    def __init__(self, in_channels: int, hidden_channels: int, edge_dim: int | None = None) -> None:
        super().__init__()
        self.clamp = OutlierClamp(in_channels)
        self.lin = Linear(in_channels, hidden_channels, bias=False)
        self.clamp_edge = None if edge_dim is None else OutlierClamp(edge_dim)
        self.lin_edge = None if edge_dim is None else Linear(edge_dim, hidden_channels, bias=False)
        self.norm = BoundedNorm(hidden_channels)

    def reset_parameters(self) -> None:
        self.lin.reset_parameters()
        if self.lin_edge is not None:
            self.lin_edge.reset_parameters()
        self.reset_statistics()

    def reset_statistics(self) -> None:
        for module in (self.clamp, self.clamp_edge, self.norm):
            if module is not None:
                module.reset_statistics()

    def forward(self, x: Tensor, edges: Edges | None = None) -> Prepared:
        """The output for half precision is in float32."""
        x, reciprocal = self.clamp(x)
        v = self.lin((x * reciprocal).to(self.lin.weight.dtype))
        if edges is None or self.clamp_edge is None or self.lin_edge is None:
            return Prepared(x, self.norm(v))
        edge_attr, reciprocal = self.clamp_edge(edges.attr)
        v = v.index_select(0, edges.source) + self.lin_edge((edge_attr * reciprocal).to(v.dtype))
        return Prepared(x, self.norm(v), edge_attr)
