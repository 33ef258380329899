"""What a filter sees of an encoding: how many members each component has, where they are and how they spread."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_gic.kernels.library import OPS, is_transformed, register_reference
from torch_gic.kernels.operands import check_tensor

# The mass that is added to that of a component, as a share of the mass of the field. It draws components with few members to
# zero. The same number is kMassShrinkage in csrc/encoding/describe_op.cpp.
MASS_SHRINKAGE = 0.1
# The mass that is added per member. For smaller weights, float32 is too inexact for the spread. It is kCountShrinkage in C++.
COUNT_SHRINKAGE = 1e-4

OPS.define("describe(Tensor encoding, Tensor mass, Tensor sigma) -> Tensor")
OPS.define("describe_backward(Tensor grad, Tensor encoding, Tensor mass, Tensor sigma) -> (Tensor, Tensor, Tensor)")


def describe(encoding: Tensor, mass: Tensor, sigma: Tensor) -> Tensor:
    r"""Describes the members of each field per component: their number, their mean and their spread

    .. math::
        \mathbf{y}_{ikc} = \Bigl[ \ln \Bigl( 1 + \sum_j Q_{jc} \Bigr) \, \Big\Vert \,
        \frac{1}{m_{ikc}} \sum_j a_{ij} Q_{jc} \, \mathbf{z}_{jc} \, \Big\Vert \,
        \frac{1}{m_{ikc}} \sum_j a_{ij} Q_{jc} \, (\mathbf{z}_{jc}^2 - 1) \Bigr],

        m_{ikc} = \sum_j a_{ij} Q_{jc} + \tfrac{1}{10} \sum_{j, c^{\prime}} a_{ij} Q_{jc^{\prime}} + 10^{-4} \sum_j Q_{jc},
        \qquad
        \mathbf{z}_{jc} = (\mathbf{x}_j - \mu_c) / \sigma_c.

    The mean and the spread are the gradients of :func:`~torch_gic.encoding.gaussian_encode`, in units of the deviation and per
    unit of mass :math:`m`. So fields of many and of few members give numbers of the same size. The spread differs from the
    gradient with respect to :math:`\sigma_c` in one respect. There, 1 is subtracted from the weighted square of each member.
    Here, the 1 has the weight too.

    The second term of :math:`m` draws components with few members to zero, and the third one those with tiny weights. An empty
    field gives zeros.

    Args:
        encoding (torch.Tensor): The gradients.
        mass (torch.Tensor): The masses :math:`\sum_j a_{ij} Q_{jc}` and :math:`\sum_j Q_{jc}`.
        sigma (torch.Tensor): Standard deviations of the components.

    Shapes:
        - **input:** gradients :math:`(N, K, C, 2, d)`, masses :math:`(N, K, C, 2)`, deviations :math:`(K, C, d)`
        - **output:** :math:`(N, K, C, 2 d + 1)`
    """
    run = reference if is_transformed() else torch.ops.torch_gic.describe
    return run(encoding, mass, sigma.to(encoding.dtype))


@register_reference("describe")
def reference(encoding: Tensor, mass: Tensor, sigma: Tensor) -> Tensor:
    _check(encoding, mass, sigma)
    weighted, count = mass.unbind(dim=-1)
    inverse = _inverse(weighted, count)[..., None, None]
    excess = torch.stack([torch.zeros_like(count), count - weighted], dim=-1).unsqueeze(-1)
    moments = (encoding * sigma.unsqueeze(-2) + excess) * inverse
    return torch.cat([count.log1p().unsqueeze(-1), moments.flatten(start_dim=-2)], dim=-1)


@register_reference("describe_backward")
def reference_backward(grad: Tensor, encoding: Tensor, mass: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    _check(encoding, mass, sigma)
    check_tensor(grad, "grad", (*encoding.shape[:3], 2 * encoding.size(4) + 1), encoding.dtype)
    weighted, count = mass.unbind(dim=-1)
    inverse = _inverse(weighted, count)
    to_log, to_moments = grad[..., 0], grad[..., 1:].unflatten(-1, (2, -1))
    by_sigma = (to_moments * encoding).sum(dim=-2)
    to_excess = to_moments[..., 1, :].sum(dim=-1)
    to_mass = -((by_sigma * sigma).sum(dim=-1) + to_excess * (count - weighted)) * inverse.square()
    to_excess = to_excess * inverse
    to_weighted = to_mass + MASS_SHRINKAGE * to_mass.sum(dim=-1, keepdim=True) - to_excess
    return (
        to_moments * sigma.unsqueeze(-2) * inverse[..., None, None],
        torch.stack([to_weighted, to_log / (1 + count) + to_excess + COUNT_SHRINKAGE * to_mass], dim=-1),
        (by_sigma * inverse.unsqueeze(-1)).sum(dim=0),
    )


def _inverse(weighted: Tensor, count: Tensor) -> Tensor:
    whole = weighted.sum(dim=-1, keepdim=True)
    return torch.where(whole > 0, weighted + MASS_SHRINKAGE * whole + COUNT_SHRINKAGE * count, 1).reciprocal()


def _check(encoding: Tensor, mass: Tensor, sigma: Tensor) -> None:
    check_tensor(encoding, "encoding", (None, None, None, 2, None))
    check_tensor(mass, "mass", (*encoding.shape[:3], 2), encoding.dtype)
    check_tensor(sigma, "sigma", (*encoding.shape[1:3], encoding.size(4)), encoding.dtype)


@torch.library.register_fake("torch_gic::describe", lib=OPS)
def _(encoding: Tensor, mass: Tensor, sigma: Tensor) -> Tensor:
    return encoding.new_empty(*encoding.shape[:3], 2 * encoding.size(4) + 1)


@torch.library.register_fake("torch_gic::describe_backward", lib=OPS)
def _(grad: Tensor, encoding: Tensor, mass: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return encoding.new_empty(encoding.shape), mass.new_empty(mass.shape), sigma.new_empty(sigma.shape)


def _setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, grad: Tensor | None) -> tuple[Tensor | None, ...]:
    if grad is None:
        return None, None, None
    inputs = ctx.saved_tensors
    if torch.is_grad_enabled():  # for a second derivative, PyTorch differentiates the reference
        wanted = [value for value, needs in zip(inputs, ctx.needs_input_grad, strict=True) if needs]
        found = iter(torch.autograd.grad(reference(*inputs), wanted, grad, create_graph=True))
        return tuple(next(found) if needs else None for needs in ctx.needs_input_grad)
    gradients = torch.ops.torch_gic.describe_backward(grad, *inputs)
    return tuple(value if needs else None for value, needs in zip(gradients, ctx.needs_input_grad, strict=True))


torch.library.register_autograd("torch_gic::describe", _backward, setup_context=_setup_context, lib=OPS)
