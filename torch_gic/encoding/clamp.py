"""Mean and deviation of each channel, and the clamp of what is far from the mean."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_gic.encoding.normalize import reciprocal_deviation
from torch_gic.kernels.library import OPS, is_transformed, register_reference
from torch_gic.kernels.operands import check_tensor

# Feature vectors of a length between MIN_LENGTH and MAX_LENGTH are not scaled: a one-hot class has length 1, 64 features of
# unit variance have length 8. Below ZERO_LENGTH, features count as zero. The same numbers are in csrc/encoding/clamp_op.cpp.
MIN_LENGTH, MAX_LENGTH, ZERO_LENGTH = 1.0, 8.0, 1e-15

OPS.define("channel_statistics(Tensor x) -> Tensor")
OPS.define("outlier_clamp(Tensor x, Tensor running, float bound) -> (Tensor, Tensor)")
OPS.define("outlier_clamp_backward(Tensor grad, Tensor x, Tensor running, float bound) -> Tensor")


def channel_statistics(x: Tensor) -> Tensor:
    """The mean, the standard deviation and 1 for each channel: ``[3, F]``. Needs at least one row, and has no gradient."""
    statistics = statistics_reference if is_transformed() else torch.ops.torch_gic.channel_statistics
    return statistics(x.detach())


def outlier_clamp(x: Tensor, running: Tensor, bound: float) -> tuple[Tensor, Tensor]:
    r"""Clamps each channel to :math:`B` deviations around its mean, and scales all features by one factor

    .. math::
        \mathbf{x}^{\prime} = \frac{\mathrm{clamp}(r; 1, 8)}{r} \cdot
        \mathrm{clamp}(\mathbf{x}; \mathbf{m} - B \mathbf{s}, \mathbf{m} + B \mathbf{s}), \qquad
        r^2 = \sum_d \left( m_d^2 + s_d^2 \right).

    Args:
        x (torch.Tensor): The features.
        running (torch.Tensor): Weighted sums over batches of the means, of the deviations, and of 1. Their ratios are the
            running statistics. Where the sum of weights is zero, the mean is 0 and the deviation 1. They get no gradient.
        bound (float): The largest deviation :math:`B`.

    Returns:
        The features, and one over their deviations, zero for a channel that is constant up to rounding.

    Shapes:
        - **input:** :math:`(N, F)`, :math:`(3, F)`
        - **output:** :math:`(N, F)`, :math:`(F)`
    """
    clamp = reference if is_transformed() else torch.ops.torch_gic.outlier_clamp
    # A copy: the backward pass needs these statistics, even if the layer has seen another batch before it.
    return clamp(x, running.to(x.dtype, copy=True), bound)


def recall(running: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and deviation of each channel; 0 and 1 before any batch."""
    mean, deviation, weight = running
    fresh = weight == 0
    weight = weight + fresh
    return torch.where(fresh, 0, mean / weight), torch.where(fresh, 1, deviation / weight)


@register_reference("channel_statistics")
def statistics_reference(x: Tensor) -> Tensor:
    check_tensor(x, "x", (None, None))
    mean = x.mean(dim=0)
    return torch.stack([mean, (x - mean).square().mean(dim=0).sqrt(), torch.ones_like(mean)])


def _limits(running: Tensor, bound: float) -> list[Tensor]:
    """The bounds of each channel, the factor of all channels, and one over the deviations. All are rounded at the end."""
    mean, deviation = recall(running.double())
    length = (mean.square() + deviation.square()).sum().sqrt()
    factor = torch.where(length <= ZERO_LENGTH, 1, length.clamp(MIN_LENGTH, MAX_LENGTH) / length)
    reciprocal = reciprocal_deviation(mean, deviation.square()) / factor  # of the features as they come out
    limits = mean - bound * deviation, mean + bound * deviation, factor, reciprocal
    return [value.to(running.dtype) for value in limits]


@register_reference("outlier_clamp")
def reference(x: Tensor, running: Tensor, bound: float) -> tuple[Tensor, Tensor]:
    _check(x, running, bound)
    lower, upper, factor, reciprocal = _limits(running, bound)
    return x.clamp(lower, upper) * factor, reciprocal


@register_reference("outlier_clamp_backward")
def reference_backward(grad: Tensor, x: Tensor, running: Tensor, bound: float) -> Tensor:
    _check(x, running, bound)
    check_tensor(grad, "grad", tuple(x.shape), x.dtype)
    lower, upper, factor, _ = _limits(running, bound)
    return torch.where((x >= lower) & (x <= upper), grad * factor, 0)


def _check(x: Tensor, running: Tensor, bound: float) -> None:
    if not 0 < bound < float("inf"):
        raise ValueError(f"Expected 'bound' to be positive and finite (got {bound})")
    check_tensor(x, "x", (None, None))
    check_tensor(running, "running", (3, x.size(1)), x.dtype)


@torch.library.register_fake("torch_gic::channel_statistics", lib=OPS)
def _(x: Tensor) -> Tensor:
    return x.new_empty(3, x.size(1))


@torch.library.register_fake("torch_gic::outlier_clamp", lib=OPS)
def _(x: Tensor, running: Tensor, bound: float) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x, memory_format=torch.contiguous_format), x.new_empty(x.size(1))


@torch.library.register_fake("torch_gic::outlier_clamp_backward", lib=OPS)
def _(grad: Tensor, x: Tensor, running: Tensor, bound: float) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, running, ctx.bound = inputs
    ctx.save_for_backward(x, running)
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, grad: Tensor | None, *_: Any) -> tuple[Tensor | None, None, None]:
    if grad is None:
        return None, None, None
    x, running = ctx.saved_tensors
    # For a second derivative, PyTorch differentiates the reference, which is linear in the gradient.
    backward = reference_backward if torch.is_grad_enabled() else torch.ops.torch_gic.outlier_clamp_backward
    return backward(grad, x, running, ctx.bound), None, None


torch.library.register_autograd("torch_gic::outlier_clamp", _backward, setup_context=_setup_context, lib=OPS)
