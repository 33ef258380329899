"""Projection, normalisation, mixture and filter: what the convolution and the aggregation share."""

from __future__ import annotations

from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import Linear

from torch_gic._checks import check_at_least, check_features
from torch_gic.fields import Fields
from torch_gic.nn.conv.bounded_norm import BoundedNorm
from torch_gic.nn.conv.gaussian_mixture import GaussianMixture


class GaussianFilter(torch.nn.Module):
    r"""A linear map of the Gaussian encoding of fields

    .. math::
        \mathbf{y}_i = \mathbf{b} + \sum_{k=1}^K \sum_{c=1}^C \mathbf{W}_{kc} \,
        \Bigl[ \frac{\partial \zeta_{ik}}{\partial \mu_{kc}} \, \Big\Vert \,
        \frac{\partial \zeta_{ik}}{\partial \sigma_{kc}} \Bigr]
        \qquad \text{of} \qquad \mathbf{v}_j = \mathrm{norm}(\mathbf{W}_v \, \mathrm{norm}(\mathbf{x}_j)),

    where :math:`\mathrm{norm}` is :class:`~torch_gic.nn.BoundedNorm`. The first norm makes the units of the features equal.
    The second one gives the mixture what it expects. Inputs of :meth:`forward` come from :meth:`normalize`, the first norm.

    Args:
        in_channels (int): Size of each feature vector, or :obj:`-1` to take it from the first input.
        out_channels (int): Size of each output.
        num_scales (int): The number of scales :math:`K`.
        num_components (int): The number of components :math:`C` per scale.
        hidden_channels (int, optional): Size of :math:`\mathbf{v}`. :obj:`None`: the mixture sees
            :math:`\mathbf{x}` itself, as in the paper. (default: :obj:`32`)
        bias (bool, optional): Whether to add :math:`\mathbf{b}`. (default: :obj:`True`)

    Shapes:
        - **input:** features :math:`(M, F_{in})`, fields of :math:`N` nodes
        - **output:** :math:`(N, F_{out})`
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        num_scales: int,
        num_components: int,
        hidden_channels: int | None = 32,
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
            self.projection = Projection(in_channels, hidden_channels)
            channels = hidden_channels
        self.mixture = GaussianMixture(channels, num_scales, num_components)
        encoding_channels = -1 if channels == -1 else num_scales * num_components * 2 * channels
        self.lin = WideLinear(encoding_channels, out_channels, bias, weight_initializer="glorot", bias_initializer="zeros")

    def reset_parameters(self) -> None:
        if self.projection is not None:
            self.projection.reset_parameters()
        self.mixture.reset_parameters()
        self.lin.reset_parameters()

    @property
    def in_channels(self) -> int:
        """Size of each feature vector; -1 until the first input tells it."""
        return self.mixture.in_channels if self.projection is None else self.projection.lin.in_channels

    def normalize(self, x: Tensor, other: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Features in equal units, and those of other nodes by the same statistics."""
        check_features(x, self.in_channels, self.mixture.alpha.dtype)
        if self.projection is None:
            return x, x if other is None else other
        norm = self.projection.norm_in
        if other is None:
            normalized = norm(x)
            return normalized, normalized
        statistics = norm.statistics(x)
        return norm.apply_statistics(x, *statistics), norm.apply_statistics(other, *statistics)

    def project(self, x: Tensor) -> Tensor:
        """What the mixture sees of normalised features."""
        return x if self.projection is None else self.projection(x)

    def forward(self, x: Tensor, fields: Fields, weight: Tensor | None = None) -> Tensor:
        encoding = self.mixture(self.project(x), fields, weight).flatten(start_dim=1)
        return self.lin(encoding)

    @torch.no_grad()
    def init_from_data(self, x: Tensor, generator: torch.Generator | None = None, num_iterations: int = 0) -> None:
        """Starts normalisations and mixtures from data: see :meth:`GICConv.init_from_data`."""
        if self.projection is not None:
            self.projection.reset_statistics()
            training = self.training
            self.train()
            x = self.project(self.normalize(x)[0])
            self.train(training)
        self.mixture.init_from_data(x, generator, num_iterations)


class Projection(torch.nn.Module):
    """To what the mixture sees: normalised inputs, a linear map, and a normalisation again."""

    def __init__(self, in_channels: int, hidden_channels: int) -> None:
        super().__init__()
        self.norm_in = BoundedNorm(in_channels)
        self.lin = Linear(in_channels, hidden_channels, bias=False)
        self.norm = BoundedNorm(hidden_channels)

    def reset_parameters(self) -> None:
        self.lin.reset_parameters()
        self.reset_statistics()

    def reset_statistics(self) -> None:
        self.norm_in.reset_parameters()
        self.norm.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.lin(x.to(self.lin.weight.dtype)))  # normalised features are in float32 beside half precision


class WideLinear(Linear):
    """A linear map in the type of its input, which holds sums over many members: in float16 they would overflow."""

    def forward(self, x: Tensor) -> Tensor:
        bias = None if self.bias is None else self.bias.to(x.dtype)
        autocast = torch.is_autocast_enabled(x.device.type)
        with torch.autocast(x.device.type, enabled=False) if autocast else nullcontext():
            return F.linear(x, self.weight.to(x.dtype), bias)
