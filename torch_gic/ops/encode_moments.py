"""The sums over receptive fields in which the Gaussian encoding is linear: what its kernels compute."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from torch_gic._library import OPS, register_reference

# A responsibility below this is zero. Beside the others, which add up to one, it changes nothing; but times a weight it may
# be below 1e-38, where float32 has fewer bits, and some processors multiply such numbers far slower in the filter.
NEGLIGIBLE = math.exp(-64)

OPERANDS = "Tensor x, Tensor distance, Tensor prior, Tensor weight, Tensor member, Tensor vertex"
OPS.define(f"encode_moments({OPERANDS}, SymInt num_nodes) -> (Tensor, Tensor)")
OPS.define(
    f"encode_moments_backward(Tensor grad_moments, Tensor grad_mass, {OPERANDS}, bool x_needs_grad=True)"
    " -> (Tensor, Tensor, Tensor, Tensor)"
)


def encode_moments(
    x: Tensor, distance: Tensor, prior: Tensor, weight: Tensor, member: Tensor, vertex: Tensor, num_nodes: int
) -> tuple[Tensor, Tensor]:
    r"""The moments of each field under the components of a mixture

    .. math::
        \sum_j a_{ij} Q_{jc} \, x_j, \quad \sum_j a_{ij} Q_{jc} \, x_j^2 \qquad \text{and} \qquad
        \sum_j a_{ij} Q_{jc}, \quad \sum_j Q_{jc},

        Q_{jc} = \mathrm{softmax}_c \bigl( b_c - \tfrac{a_{ij}}{2} \, m_{jc} \bigr),

    over the entries of positive weight :math:`a_{ij}`; a :math:`Q_{jc}` below :math:`10^{-28}` or so is zero. Nothing of size
    :math:`E \cdot C \cdot d` is formed.

    Args:
        x (torch.Tensor): Attributes of the field members.
        distance (torch.Tensor): Squared distance :math:`m_{jc} \geq 0` of each member to each component, finite.
        prior (torch.Tensor): The offset :math:`b_c` of each component.
        weight (torch.Tensor): Weight of each entry in each scale; zero: not in the field.
        member (torch.Tensor): The member :math:`j` of each entry.
        vertex (torch.Tensor): The vertex :math:`i` of each entry; fastest if sorted.
        num_nodes (int): The number of vertices :math:`i`.

    Shapes:
        - **input:** :math:`(M, d)`, :math:`(M, K, C)`, :math:`(K, C)`, :math:`(E, K)`, :math:`(E)`, :math:`(E)`
        - **output:** moments :math:`(N, K, C, 2, d)` of :math:`x` and :math:`x^2`, masses :math:`(N, K, C, 2)`
    """
    return torch.ops.torch_gic.encode_moments(x, distance, prior, weight, member, vertex, num_nodes)


def _responsibilities(prior: Tensor, a: Tensor, m: Tensor) -> Tensor:
    q = torch.softmax(prior - a / 2 * m, dim=1) * (a > 0)
    return torch.nn.functional.threshold(q, NEGLIGIBLE, 0)


@register_reference("encode_moments")
def reference(
    x: Tensor, distance: Tensor, prior: Tensor, weight: Tensor, member: Tensor, vertex: Tensor, num_nodes: int
) -> tuple[Tensor, Tensor]:
    """One component of one scale after the other."""
    moments, masses = [], []
    both = torch.cat([x, x.square()], dim=1)
    for k in range(prior.size(0)):
        a = weight[:, k].unsqueeze(1)
        q = _responsibilities(prior[k], a, distance[:, k].index_select(0, member))
        aq = a * q
        for c in range(prior.size(1)):
            terms = aq[:, c : c + 1] * both.index_select(0, member)
            moments.append(x.new_zeros(num_nodes, both.size(1)).index_add(0, vertex, terms))
            terms = torch.stack([aq[:, c], q[:, c]], dim=1)
            masses.append(x.new_zeros(num_nodes, 2).index_add(0, vertex, terms))
    return (
        torch.stack(moments, dim=1).view(num_nodes, *prior.shape, 2, x.size(1)),
        torch.stack(masses, dim=1).view(num_nodes, *prior.shape, 2),
    )


@register_reference("encode_moments_backward")
def reference_backward(
    grad_moments: Tensor,
    grad_mass: Tensor,
    x: Tensor,
    distance: Tensor,
    prior: Tensor,
    weight: Tensor,
    member: Tensor,
    vertex: Tensor,
    x_needs_grad: bool = True,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """By hand, one component after the other: PyTorch's own gradient would keep the terms of all of them.

    The attributes of a first layer need no gradient, the largest of all: then an empty tensor stands for it.
    """
    channels = x.size(1)
    both = torch.cat([x, x.square()], dim=1)
    members = both.index_select(0, member)
    grad_both, grad_distance = torch.zeros_like(both), torch.zeros_like(distance)
    grad_prior, grad_weight = torch.zeros_like(prior), torch.zeros_like(weight)
    for k in range(prior.size(0)):
        a = weight[:, k].unsqueeze(1)
        m = distance[:, k].index_select(0, member)
        q = _responsibilities(prior[k], a, m)
        grad_aq, grad_q = grad_mass[:, k].index_select(0, vertex).unbind(dim=2)
        to_aq = []
        for c in range(prior.size(1)):
            g = grad_moments[:, k, c].flatten(start_dim=1).index_select(0, vertex)
            to_aq.append((g * members).sum(dim=1))
            if x_needs_grad:
                grad_both.index_add_(0, member, a * q[:, c : c + 1] * g)
        grad_aq = grad_aq + torch.stack(to_aq, dim=1)
        grad_q = grad_q + a * grad_aq
        grad_logit = q * (grad_q - (q * grad_q).sum(dim=1, keepdim=True))
        grad_prior[k] = grad_logit.sum(dim=0)
        grad_distance[:, k].index_add_(0, member, -a / 2 * grad_logit)
        grad_weight[:, k] = (q * grad_aq - m / 2 * grad_logit).sum(dim=1)
    grad_x = grad_both[:, :channels] + 2 * x * grad_both[:, channels:] if x_needs_grad else x.new_empty(0)
    return grad_x, grad_distance, grad_prior, grad_weight


@torch.library.register_fake("torch_gic::encode_moments", lib=OPS)
def _(
    x: Tensor, distance: Tensor, prior: Tensor, weight: Tensor, member: Tensor, vertex: Tensor, num_nodes: int
) -> tuple[Tensor, Tensor]:
    return x.new_empty(num_nodes, *prior.shape, 2, x.size(1)), x.new_empty(num_nodes, *prior.shape, 2)


@torch.library.register_fake("torch_gic::encode_moments_backward", lib=OPS)
def _(
    grad_moments: Tensor,
    grad_mass: Tensor,
    x: Tensor,
    distance: Tensor,
    prior: Tensor,
    weight: Tensor,
    member: Tensor,
    vertex: Tensor,
    x_needs_grad: bool = True,
) -> tuple[Tensor, ...]:
    grad_x = x.new_empty(x.shape if x_needs_grad else 0)
    return grad_x, *(value.new_empty(value.shape) for value in (distance, prior, weight))


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs[:6])


def _backward(ctx: Any, grad_moments: Tensor, grad_mass: Tensor) -> tuple[Tensor | None, ...]:
    x_needs_grad = ctx.needs_input_grad[0]
    backward = torch.ops.torch_gic.encode_moments_backward
    grad_x, *gradients = backward(grad_moments, grad_mass, *ctx.saved_tensors, x_needs_grad)
    return (grad_x if x_needs_grad else None, *gradients, None, None, None)


torch.library.register_autograd("torch_gic::encode_moments", _backward, setup_context=_setup_context, lib=OPS)
