"""What a mixture sees: features of zero mean and unit variance, and none far out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_gic._checks import check_features
from torch_gic.encoding.normalize import apply_norm, bounded_norm

MOMENTUM = 0.1
BOUND = 5.0


class BoundedNorm(torch.nn.Module):
    r"""Normalises each channel over the nodes, and bounds it softly

    .. math::
        \mathbf{z} = \frac{\mathbf{x} - \mathrm{mean}(\mathbf{x})}{\mathrm{std}(\mathbf{x})}, \qquad
        \mathbf{x}^{\prime} = \frac{\mathbf{z}}{\sqrt{1 + \mathbf{z}^2 / B^2}} \in (-B, B).

    Unlike in :class:`torch.nn.BatchNorm1d`, nothing is added to the variance: the result does not depend on the unit in which
    features are measured. Channels that are constant up to rounding give zero. The running statistics of the evaluation start
    from the first batch, not from 0 and 1. A single node in training is normalised by them, too.

    Args:
        channels (int): Size of each feature vector, or :obj:`-1` to take it from the first input.
        bound (float, optional): The largest deviation :math:`B`. (default: :obj:`5.0`)

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F)`
        - **output:** features :math:`(|\mathcal{V}|, F)`, in float32 for half precision
    """

    running: Tensor

    def __init__(self, channels: int, bound: float = BOUND) -> None:
        super().__init__()
        self.channels = channels
        self.bound = bound
        # Sums over the batches so far with falling weights: of means, of variances, and of the weights themselves.
        self.register_buffer("running", torch.empty(3, max(channels, 0)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        torch.nn.init.zeros_(self.running)

    def forward(self, x: Tensor) -> Tensor:
        check_features(x, self.channels)
        if not self._learns(x):
            return self.apply_statistics(x, *self.statistics(x))
        out, mean, var = bounded_norm(_single(x), self.bound)
        self._remember(mean, var)
        return out

    def statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of each channel: of ``x`` in training, which are then remembered, else of all batches so far."""
        if self._learns(x):
            var, mean = torch.var_mean(_single(x), dim=0, correction=0)
            self._remember(mean, var)
            return mean, var
        mean, var, weight = self.running
        fresh = weight == 0  # before any batch: mean 0 and variance 1
        weight = weight + fresh
        return mean / weight, var / weight + fresh

    def apply_statistics(self, x: Tensor, mean: Tensor, var: Tensor) -> Tensor:
        """Normalises by given statistics, such as those of other nodes."""
        return apply_norm(_single(x), mean, var, self.bound)

    def _learns(self, x: Tensor) -> bool:
        if self.channels == -1:
            self._materialize(x.size(1))
        return self.training and x.size(0) > 1

    @torch.no_grad()
    def _remember(self, mean: Tensor, var: Tensor) -> None:
        new = torch.stack([mean, var, torch.ones_like(mean)])
        self.running.lerp_(new.to(self.running.dtype), MOMENTUM)

    def _materialize(self, channels: int) -> None:
        self.channels = channels
        self.running = self.running.new_zeros(3, channels)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        running = state_dict.get(prefix + "running")
        if self.channels == -1 and running is not None and running.numel() > 0:
            self._materialize(running.size(1))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.channels}, bound={self.bound})"


def _single(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
