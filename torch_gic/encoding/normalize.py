"""Normalisation of each channel over the nodes, softly bounded: what a mixture expects."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_gic.kernels.library import OPS, is_transformed, register_reference

# The same numbers are in csrc/encoding/normalize_op.cpp.
RELATIVE_EPS = 1e-10  # times the squared mean: a smaller variance is a rounding error
MIN_VARIANCE = 1e-30  # a smaller variance counts as zero

OPS.define("bounded_norm(Tensor x, float bound) -> (Tensor, Tensor, Tensor)")
OPS.define("bounded_norm_backward(Tensor grad, Tensor x, Tensor mean, Tensor var, float bound) -> Tensor")


def bounded_norm(x: Tensor, bound: float) -> tuple[Tensor, Tensor, Tensor]:
    r"""Normalises each channel by its mean and deviation over the rows, and bounds it softly

    .. math::
        \mathbf{z} = \frac{\mathbf{x} - \mathrm{mean}(\mathbf{x})}{\mathrm{std}(\mathbf{x})}, \qquad
        \mathbf{y} = \frac{\mathbf{z}}{\sqrt{1 + \mathbf{z}^2 / B^2}}.

    A channel that is constant up to rounding gives zeros.

    Returns:
        The normalised features, and the mean and the variance of each channel, of which no gradient is taken.

    Shapes:
        - **input:** features :math:`(N, F)`, at least one row
        - **output:** :math:`(N, F)`, :math:`(F)`, :math:`(F)`
    """
    return (reference if is_transformed() else torch.ops.torch_gic.bounded_norm)(x, bound)


def apply_norm(x: Tensor, mean: Tensor, var: Tensor, bound: float) -> Tensor:
    """The same, with given statistics: those of other rows, for instance."""
    return soft_bound((x - mean) * reciprocal_deviation(mean, var), bound)


def reciprocal_deviation(mean: Tensor, var: Tensor) -> Tensor:
    """One over the deviation. For a channel that is constant up to rounding it is zero, and so is the gradient."""
    varies = var > mean.square() * RELATIVE_EPS + MIN_VARIANCE
    return torch.where(varies, var, 1.0).rsqrt() * varies


def soft_bound(x: Tensor, bound: float) -> Tensor:
    r""":math:`x / \sqrt{1 + x^2 / b^2}`: x itself near zero, never beyond the bound."""
    excess = (x * (1 / bound)).square()
    return x * torch.rsqrt(excess + 1)


@register_reference("bounded_norm")
def reference(x: Tensor, bound: float) -> tuple[Tensor, Tensor, Tensor]:
    var, mean = torch.var_mean(x, dim=0, correction=0)
    return apply_norm(x, mean, var, bound), mean.detach().clone(), var.detach().clone()


@register_reference("bounded_norm_backward")
def reference_backward(grad: Tensor, x: Tensor, mean: Tensor, var: Tensor, bound: float) -> Tensor:
    scale = reciprocal_deviation(mean, var)
    z = (x - mean) * scale
    to_z = grad * ((z * (1 / bound)).square() + 1).pow(-1.5)
    return (to_z - to_z.mean(dim=0) - z * (to_z * z).mean(dim=0)) * scale


@torch.library.register_fake("torch_gic::bounded_norm", lib=OPS)
def _(x: Tensor, bound: float) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(x, memory_format=torch.contiguous_format), x.new_empty(x.size(1)), x.new_empty(x.size(1))


@torch.library.register_fake("torch_gic::bounded_norm_backward", lib=OPS)
def _(grad: Tensor, x: Tensor, mean: Tensor, var: Tensor, bound: float) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    x, ctx.bound = inputs
    ctx.save_for_backward(x, *output[1:])
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, grad: Tensor | None, *_: Any) -> tuple[Tensor | None, None]:
    if grad is None:
        return None, None
    x, mean, var = ctx.saved_tensors
    if torch.is_grad_enabled():  # for a second derivative, PyTorch differentiates the reference
        return torch.autograd.grad(reference(x, ctx.bound)[0], x, grad, create_graph=True)[0], None
    return torch.ops.torch_gic.bounded_norm_backward(grad, x, mean, var, ctx.bound), None


torch.library.register_autograd("torch_gic::bounded_norm", _backward, setup_context=_setup_context, lib=OPS)
