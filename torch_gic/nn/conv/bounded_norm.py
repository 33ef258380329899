"""The normalisation before a mixture: zero mean, unit variance, and no outliers."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_gic._checks import check_features
from torch_gic.encoding.clamp import recall
from torch_gic.encoding.normalize import apply_norm, bounded_norm
from torch_gic.nn.conv.running_statistics import RunningStatistics, single

MAX_DEVIATIONS = 5.0


class BoundedNorm(RunningStatistics):
    r"""Normalises each channel over the nodes, and bounds the result softly

    .. math::
        \mathbf{z} = \frac{\mathbf{x} - \mathrm{mean}(\mathbf{x})}{\mathrm{std}(\mathbf{x})}, \qquad
        \mathbf{x}^{\prime} = \frac{\mathbf{z}}{\sqrt{1 + \mathbf{z}^2 / B^2}} \in (-B, B).

    Unlike :class:`torch.nn.BatchNorm1d`, it adds nothing to the variance, so the unit of the features does not matter.
    Channels that are constant up to rounding give zero. Evaluation uses running statistics, which start from the first batch
    and not from 0 and 1. In training, they also normalise a single node.

    Args:
        channels (int): Size of each feature vector, or :obj:`-1` to take it from the first input.
        bound (float, optional): The largest deviation :math:`B`. (default: :obj:`5.0`)

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F)`
        - **output:** features :math:`(|\mathcal{V}|, F)`, in float32 for half precision
    """

    def __init__(self, channels: int, bound: float = MAX_DEVIATIONS) -> None:
        super().__init__(channels)
        self.bound = bound

    def reset_parameters(self) -> None:
        self.reset_statistics()

    def forward(self, x: Tensor) -> Tensor:
        check_features(x, self.channels)
        learns, x = self.learns(x), single(x)
        if learns is False:
            return self._by_statistics(x)
        out, mean, var = bounded_norm(x, self.bound)
        if isinstance(learns, Tensor):
            out = torch.where(learns, out, self._by_statistics(x))
        self.remember(torch.stack([mean, var.sqrt(), torch.ones_like(mean)]), learns)
        return out

    def _by_statistics(self, x: Tensor) -> Tensor:
        mean, deviation = recall(self.running)
        return apply_norm(x, mean, deviation.square(), self.bound)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.channels}, bound={self.bound})"
