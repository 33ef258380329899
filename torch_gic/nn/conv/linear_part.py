"""The part of a convolution that is linear in the features."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.nn import Linear

from torch_gic.encoding import field_mean
from torch_gic.fields import Fields
from torch_gic.fields.edge_fields import fields_of_sources
from torch_gic.nn.conv.projection import Edges, Prepared


class LinearPart(torch.nn.Module):
    r"""Adds linear maps of the node, of the mean of its neighbours and of the mean of its edges

    .. math::
        \mathbf{y}_i = \mathbf{W}_0 \, \hat{\mathbf{x}}_i + \mathbf{W}_1 \, \bar{\mathbf{x}}_i
        + \mathbf{W}_2 \, \bar{\mathbf{e}}_i + \mathbf{b}.

    Args:
        in_channels (int): Size of each neighbour's feature vector, or :obj:`-1` to take it from the first input.
        target_channels (int): Size of the feature vector of the node itself.
        out_channels (int): Size of each output.
        edge_dim (int, optional): Size of each edge feature vector. With :obj:`None`, there is no :math:`\mathbf{W}_2`.
        bias (bool): Whether to add :math:`\mathbf{b}`.
    """

    def __init__(self, in_channels: int, target_channels: int, out_channels: int, edge_dim: int | None, bias: bool) -> None:
        super().__init__()
        self.root = Linear(target_channels, out_channels, bias)
        self.mean = Linear(in_channels, out_channels, bias=False)
        self.edge = None if edge_dim is None else Linear(edge_dim, out_channels, bias=False)

    def reset_parameters(self) -> None:
        for module in (self.root, self.mean, self.edge):
            if module is not None:
                module.reset_parameters()

    def forward(self, root: Tensor, prepared: Prepared, fields: Fields, edges: Edges | None = None) -> Tensor:
        dtype = self.root.weight.dtype
        x = prepared.x.to(dtype)
        members = fields if edges is None else fields_of_sources(fields, edges.source, x.size(0))
        narrow = self.mean.in_channels <= self.mean.out_channels  # whichever averages fewer channels
        mean = self.mean(field_mean(x, members).to(dtype)) if narrow else field_mean(self.mean(x), members)
        out = self.root(root.to(dtype)) + mean
        if self.edge is None or prepared.edge_attr is None:
            return out
        return out + self.edge(field_mean(prepared.edge_attr.to(dtype), fields).to(dtype))
