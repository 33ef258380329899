"""The filter of the encoding as a filter of moments: means and deviations go into its weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_gic._library import OPS, register_reference

OPS.define("fold_filter(Tensor weight, Tensor mu, Tensor sigma) -> (Tensor, Tensor)")
OPS.define(
    "fold_filter_backward(Tensor grad_moments, Tensor grad_mass, Tensor weight, Tensor mu, Tensor sigma)"
    " -> (Tensor, Tensor, Tensor)"
)


def fold_filter(weight: Tensor, mu: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
    r"""The weights of the moments of a field that give what :math:`\mathbf{w}` gives of its gradients:

    .. math::
        w_\mu \frac{X_1 - \mu S_1}{\sigma^2} + w_\sigma \Bigl( \frac{X_2 - 2 \mu X_1 + \mu^2 S_1}{\sigma^3} -
        \frac{S_0}{\sigma} \Bigr)

        = \Bigl( \frac{w_\mu}{\sigma^2} - \frac{2 \mu w_\sigma}{\sigma^3} \Bigr) X_1 +
        \frac{w_\sigma}{\sigma^3} X_2 + \Bigl( \frac{\mu^2 w_\sigma}{\sigma^3} - \frac{\mu w_\mu}{\sigma^2} \Bigr) S_1 -
        \frac{w_\sigma}{\sigma} S_0 ,

    the weights of :math:`S_1` and :math:`S_0` summed over the channels, for each filter, scale and component.

    Args:
        weight (torch.Tensor): The weights of the gradients of means and deviations.
        mu (torch.Tensor): The means of the components.
        sigma (torch.Tensor): Their standard deviations.

    Shapes:
        - **input:** :math:`(F_{out}, K \cdot C \cdot 2 \cdot d)`, :math:`(K, C, d)`, :math:`(K, C, d)`
        - **output:** weights of the moments :math:`(F_{out}, K \cdot C \cdot 2 \cdot d)`, of the masses
          :math:`(F_{out}, K \cdot C \cdot 2)`
    """
    return torch.ops.torch_gic.fold_filter(weight, mu, sigma)


@register_reference("fold_filter")
def reference(weight: Tensor, mu: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
    from_mu, from_sigma = weight.view(weight.size(0), *mu.shape[:2], 2, mu.size(2)).unbind(dim=3)
    first, second = from_mu / sigma.square(), from_sigma / sigma.pow(3)
    to_total = (mu.square() * second - mu * first).sum(dim=-1)
    to_count = -(from_sigma / sigma).sum(dim=-1)
    to_moments = torch.stack([first - 2 * mu * second, second], dim=3)
    return to_moments.flatten(start_dim=1), torch.stack([to_total, to_count], dim=3).flatten(start_dim=1)


@register_reference("fold_filter_backward")
def reference_backward(
    grad_moments: Tensor, grad_mass: Tensor, weight: Tensor, mu: Tensor, sigma: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    shape = (weight.size(0), *mu.shape[:2], 2, mu.size(2))
    from_mu, from_sigma = weight.view(shape).unbind(dim=3)
    grad_first, grad_second = grad_moments.view(shape).unbind(dim=3)
    total, count = grad_mass.view(*shape[:4], 1).unbind(dim=3)
    to_mu = grad_first - mu * total
    to_sigma = grad_second - mu * (2 * grad_first - mu * total)
    grad_weight = torch.stack([to_mu / sigma.square(), to_sigma / sigma.pow(3) - count / sigma], dim=3)
    grad_mu = 2 * from_sigma / sigma.pow(3) * (mu * total - grad_first) - from_mu / sigma.square() * total
    by_power = from_sigma * (count - 3 * to_sigma / sigma.square()) - 2 * from_mu * to_mu / sigma
    return grad_weight.flatten(start_dim=1), grad_mu.sum(dim=0), (by_power / sigma.square()).sum(dim=0)


@torch.library.register_fake("torch_gic::fold_filter", lib=OPS)
def _(weight: Tensor, mu: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
    return weight.new_empty(weight.shape), weight.new_empty(weight.size(0), mu.size(0) * mu.size(1) * 2)


@torch.library.register_fake("torch_gic::fold_filter_backward", lib=OPS)
def _(grad_moments: Tensor, grad_mass: Tensor, weight: Tensor, mu: Tensor, sigma: Tensor) -> tuple[Tensor, ...]:
    return tuple(value.new_empty(value.shape) for value in (weight, mu, sigma))


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, grad_moments: Tensor, grad_mass: Tensor) -> tuple[Tensor, ...]:
    return torch.ops.torch_gic.fold_filter_backward(grad_moments, grad_mass, *ctx.saved_tensors)


torch.library.register_autograd("torch_gic::fold_filter", _backward, setup_context=_setup_context, lib=OPS)
