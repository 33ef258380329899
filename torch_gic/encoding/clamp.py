"""Mean and deviation of each channel, and the clamp of what is far from the mean."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_gic.encoding.normalize import reciprocal_deviation
from torch_gic.kernels.library import OPS, is_transformed, register_reference
from torch_gic.kernels.operands import check_tensor

# Lengths of ordinary feature vectors: a one-hot class has 1, and 64 features of unit variance have 8. Nothing is said about a
# vector that is shorter than NO_LENGTH. The same numbers are in csrc/encoding/clamp_op.cpp.
SHORTEST, LONGEST, NO_LENGTH = 1.0, 8.0, 1e-15

OPS.define("channel_statistics(Tensor x) -> Tensor")
OPS.define("outlier_clamp(Tensor x, Tensor running, float bound) -> (Tensor, Tensor)")
OPS.define("outlier_clamp_backward(Tensor grad, Tensor x, Tensor running, float bound) -> Tensor")


def channel_statistics(x: Tensor) -> Tensor:
    """Mean, standard deviation and 1 for each channel of at least one row, of which no gradient is taken: ``[3, F]``."""
    statistics = statistics_reference if is_transformed() else torch.ops.torch_gic.channel_statistics
    return statistics(x.detach())


def outlier_clamp(x: Tensor, running: Tensor, bound: float) -> tuple[Tensor, Tensor]:
    r"""Clamps each channel to :math:`B` deviations around its mean, and scales all features to an ordinary length

    .. math::
        \mathbf{x}^{\prime} = \frac{\mathrm{clamp}(r; 1, 8)}{r} \cdot
        \mathrm{clamp}(\mathbf{x}; \mathbf{m} - B \mathbf{s}, \mathbf{m} + B \mathbf{s}), \qquad
        r^2 = \sum_d \left( m_d^2 + s_d^2 \right).

    Args:
        x (torch.Tensor): The features.
        running (torch.Tensor): Sums of means, of deviations, and of the weights that both are divided by. Where the weight is
            zero, the mean is 0 and the deviation 1. No gradient is taken of them.
        bound (float): The largest deviation :math:`B`.

    Returns:
        The features, and :math:`1 / \mathbf{s}`, zero for a channel that is constant up to rounding.

    Shapes:
        - **input:** :math:`(N, F)`, :math:`(3, F)`
        - **output:** :math:`(N, F)`, :math:`(F)`
    """
    clamp = reference if is_transformed() else torch.ops.torch_gic.outlier_clamp
    # A copy: the way back needs these statistics, also if the layer has seen another batch by then.
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
    """The least and the largest value of each channel, the factor of all, and one over the deviation, as rounded last."""
    mean, deviation = recall(running.double())
    length = (mean.square() + deviation.square()).sum().sqrt()
    factor = torch.where(length <= NO_LENGTH, 1, length.clamp(SHORTEST, LONGEST) / length)
    reciprocal = reciprocal_deviation(mean, deviation.square())
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
    # Linear in the gradient: where somebody wants the gradient of this gradient, PyTorch finds it in the reference.
    backward = reference_backward if torch.is_grad_enabled() else torch.ops.torch_gic.outlier_clamp_backward
    return backward(grad, x, running, ctx.bound), None, None


torch.library.register_autograd("torch_gic::outlier_clamp", _backward, setup_context=_setup_context, lib=OPS)
