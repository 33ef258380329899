"""What the convolution and the aggregation share: projection, normalisation, mixture and filter."""

from __future__ import annotations

from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import Linear

from torch_gic._checks import check_at_least, check_features
from torch_gic.encoding.clamp import outlier_clamp
from torch_gic.fields import Fields
from torch_gic.nn.conv.gaussian_mixture import GaussianMixture
from torch_gic.nn.conv.projection import Edges, Prepared, Projection
from torch_gic.nn.conv.running_statistics import single


class GaussianFilter(torch.nn.Module):
    r"""A linear map of the description of each field

    .. math::
        \mathbf{y}_i = \mathbf{b} + \sum_{k=1}^K \sum_{c=1}^C \mathbf{W}_{kc} \, \mathrm{describe}_{kc}
        \bigl( \{ \mathbf{v}_j \} \bigr), \qquad
        \mathbf{v}_j = \mathrm{norm} \bigl( \mathbf{W}_v \, \hat{\mathbf{x}}_j / \mathbf{s} \bigr).

    :func:`~torch_gic.encoding.describe` gives the number, the mean and the spread of the members of each component.
    :class:`~torch_gic.nn.conv.projection.Projection` makes :math:`\mathbf{v}`. Without it, the filter takes the gradients of
    :func:`~torch_gic.encoding.gaussian_encode`, as in the paper, and features are neither clamped nor normalised.

    :meth:`prepare` computes :math:`\mathbf{v}` from features, and :meth:`forward` the output from :math:`\mathbf{v}`.

    Args:
        in_channels (int): Size of each feature vector, or :obj:`-1` to take it from the first input.
        out_channels (int): Size of each output.
        num_scales (int): The number of scales :math:`K`.
        num_components (int): The number of components :math:`C` per scale.
        hidden_channels (int, optional): Size of :math:`\mathbf{v}`. With :obj:`None`, the mixture sees
            :math:`\mathbf{x}` itself, as in the paper. (default: :obj:`16`)
        edge_dim (int, optional): Size of each edge feature vector. With it, edges are the members of fields.
            (default: :obj:`None`)
        bias (bool, optional): Whether to add :math:`\mathbf{b}`. (default: :obj:`True`)

    Shapes:
        - **input:** :math:`\mathbf{v}` of members :math:`(M, d)`, fields of :math:`N` nodes
        - **output:** :math:`(N, F_{out})`
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        num_scales: int,
        num_components: int,
        hidden_channels: int | None = 16,
        edge_dim: int | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if in_channels != -1:
            check_at_least(in_channels, "in_channels", 1)
        check_at_least(out_channels, "out_channels", 1)
        check_at_least(num_scales, "num_scales", 1)
        check_at_least(num_components, "num_components", 1)
        channels = in_channels
        self.projection: Projection | None = None
        if hidden_channels is not None:
            check_at_least(hidden_channels, "hidden_channels", 1)
            self.projection = Projection(in_channels, hidden_channels, edge_dim)
            channels = hidden_channels
        self.mixture = GaussianMixture(channels, num_scales, num_components, describes=hidden_channels is not None)
        size = -1 if channels == -1 else num_scales * num_components * self.mixture.out_channels
        self.lin = WideLinear(size, out_channels, bias, weight_initializer="glorot", bias_initializer="zeros")

    def reset_parameters(self) -> None:
        if self.projection is not None:
            self.projection.reset_parameters()
        self.mixture.reset_parameters()
        self.lin.reset_parameters()

    @property
    def in_channels(self) -> int:
        """Size of each feature vector; -1 until the first input tells it."""
        return self.mixture.in_channels if self.projection is None else self.projection.lin.in_channels

    def prepare(self, x: Tensor, edges: Edges | None = None) -> Prepared:
        """Computes the clamped features, and what the mixture sees of them."""
        check_features(x, self.in_channels, self.mixture.alpha.dtype)
        return Prepared(x, x) if self.projection is None else self.projection(x, edges)

    def clamp(self, x: Tensor) -> Tensor:
        """Clamps features of other nodes by the running statistics."""
        if self.projection is None:
            return x
        clamp = self.projection.clamp
        return outlier_clamp(single(x), clamp.running, clamp.bound)[0]

    def forward(self, v: Tensor, fields: Fields, weight: Tensor | None = None) -> Tensor:
        return self.lin(self.mixture(v, fields, weight).flatten(start_dim=1))

    @torch.no_grad()
    def init_from_data(
        self,
        x: Tensor,
        edges: Edges | None = None,
        generator: torch.Generator | None = None,
        num_iterations: int = 0,
    ) -> None:
        """Sets statistics and mixtures from data: see :meth:`GICConv.init_from_data`."""
        if self.projection is not None:
            self.projection.reset_statistics()
            training = self.training
            self.train()
            x = self.prepare(x, edges).v
            self.train(training)
        self.mixture.init_from_data(x, generator, num_iterations)


class WideLinear(Linear):
    """A linear map in the type of its input. The input holds sums over many members, which would overflow in float16."""

    def forward(self, x: Tensor) -> Tensor:
        bias = None if self.bias is None else self.bias.to(x.dtype)
        autocast = torch.is_autocast_enabled(x.device.type)
        with torch.autocast(x.device.type, enabled=False) if autocast else nullcontext():
            return F.linear(x, self.weight.to(x.dtype), bias)
