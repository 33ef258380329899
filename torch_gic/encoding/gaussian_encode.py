"""Edge-induced Gaussian encoding: each field as the gradient of its log-likelihood under a mixture."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_gic.encoding.posterior import component_distance, component_posterior, responsibilities
from torch_gic.fields.fields import Fields
from torch_gic.kernels.library import OPS, is_transformed, register_reference
from torch_gic.kernels.operands import can_look, check_values, row_of_entries

OPERANDS = "Tensor x, Tensor mu, Tensor sigma, Tensor log_pi, Tensor weight, Tensor member, Tensor rowptr"
OPS.define(f"gaussian_encode({OPERANDS}) -> (Tensor, Tensor)")
OPS.define(
    f"gaussian_encode_backward(Tensor grad, Tensor grad_mass, Tensor encoding, Tensor mass, {OPERANDS},"
    " bool x_needs_grad=True, bool weight_needs_grad=True) -> (Tensor, Tensor, Tensor, Tensor, Tensor)"
)
Gradients = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


def gaussian_encode(
    x: Tensor, mu: Tensor, sigma: Tensor, log_pi: Tensor, fields: Fields, weight: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    r"""The Fisher gradients of the edge-induced Gaussian mixture, Eqns. (1) to (3) of the
    `"Gaussian-Induced Convolution for Graphs" <https://arxiv.org/abs/1811.04393>`_ paper

    .. math::
        \frac{\partial \zeta_i}{\partial \mu_c} &= \sum_j a_{ij} Q_{jc} \, \frac{x_j - \mu_c}{\sigma_c^2}
        = \frac{1}{\sigma_c} \sum_j a_{ij} Q_{jc} \, z_{jc}

        \frac{\partial \zeta_i}{\partial \sigma_c} &= \sum_j Q_{jc} \, \frac{a_{ij} (x_j - \mu_c)^2 - \sigma_c^2}{\sigma_c^3}
        = \frac{1}{\sigma_c} \sum_j Q_{jc} \, (a_{ij} z_{jc}^2 - 1)

    with :math:`z_{jc} = (x_j - \mu_c) / \sigma_c`, summed over the entries of positive weight :math:`a_{ij}`, and the
    responsibilities :math:`Q_{jc}` of :func:`~torch_gic.encoding.component_posterior`. With one component, :math:`Q = 1`
    and no distance is computed. The kernels form nothing of size :math:`E \cdot C \cdot d`.

    Args:
        x (torch.Tensor): Features of the field members.
        mu (torch.Tensor): Means of the components.
        sigma (torch.Tensor): Standard deviations of the components, positive.
        log_pi (torch.Tensor): Logarithms of the component weights.
        fields (Fields): The fields.
        weight (torch.Tensor, optional): Other weights :math:`a_{ij}` of their entries. (default: those of the fields)

    Shapes:
        - **input:** features :math:`(M, d)`, means and deviations :math:`(K, C, d)`, log weights :math:`(K, C)`,
          field weights :math:`(E, K)`
        - **output:** gradients :math:`(N, K, C, 2, d)`, 0: to :math:`\mu`, 1: to :math:`\sigma`, and masses
          :math:`(N, K, C, 2)`, 0: :math:`\sum_j a_{ij} Q_{jc}`, 1: :math:`\sum_j Q_{jc}`; in float32 for half precision,
          whose sums would overflow
    """
    weight = fields.weight if weight is None else weight
    half = (torch.bfloat16, torch.float16)  # normalised features are in float32 beside a mixture in half precision
    dtype = torch.float32 if x.dtype in half else x.dtype
    dtype = mu.dtype if mu.dtype == torch.float64 else dtype
    x, mu, sigma, log_pi, weight = (value.to(dtype) for value in (x, mu, sigma, log_pi, weight))
    encode = reference if is_transformed() else torch.ops.torch_gic.gaussian_encode
    gradients, masses = encode(x, mu, sigma, log_pi, weight, fields.index[0], fields.rowptr)
    return gradients, masses


@register_reference("gaussian_encode")
def reference(
    x: Tensor, mu: Tensor, sigma: Tensor, log_pi: Tensor, weight: Tensor, member: Tensor, rowptr: Tensor
) -> tuple[Tensor, Tensor]:
    """One component of one scale after the other; with the gradients, the masses ``sum aQ`` and ``sum Q`` of each field."""
    _check_deviations(sigma)
    node, num_nodes = row_of_entries(rowptr, member.numel()), rowptr.numel() - 1
    encodings, masses = [], []
    for k, c in _pairs(mu):
        a = weight[:, k]
        if c == 0:
            posterior = component_posterior(x, mu[k], sigma[k], log_pi[k], member, a)
        # Centring each component by itself, instead of expanding the square, is what keeps float32 exact for features far
        # from zero: the sums then hold nothing that has to cancel.
        z, q = (x - mu[k, c]) / sigma[k, c], posterior[:, c]
        terms = (a * q).unsqueeze(1) * torch.cat([z, z.square()], dim=1).index_select(0, member)
        first, second = z.new_zeros(num_nodes, terms.size(1)).index_add(0, node, terms).chunk(2, dim=1)
        mass = q.new_zeros(num_nodes, 2).index_add(0, node, torch.stack([a * q, q], dim=1))
        encodings.append(torch.stack([first, second - mass[:, 1:]], dim=1) / sigma[k, c])
        masses.append(mass)
    return (
        torch.stack(encodings, dim=1).view(num_nodes, *mu.shape[:2], 2, x.size(1)),
        torch.stack(masses, dim=1).view(num_nodes, *mu.shape[:2], 2),
    )


@register_reference("gaussian_encode_backward")
def reference_backward(
    grad: Tensor,
    grad_mass: Tensor,
    encoding: Tensor,
    mass: Tensor,
    x: Tensor,
    mu: Tensor,
    sigma: Tensor,
    log_pi: Tensor,
    weight: Tensor,
    member: Tensor,
    rowptr: Tensor,
    x_needs_grad: bool = True,
    weight_needs_grad: bool = True,
) -> Gradients:
    """Written by hand, one component after the other: autograd would keep the terms of all components.

    The features of a first layer and the fields mostly need no gradient. Then the result is an empty tensor.
    """
    _check_deviations(sigma)
    node = row_of_entries(rowptr, member.numel())
    to_x, to_mu, to_sigma, to_pi, to_weight = (torch.zeros_like(value) for value in (x, mu, sigma, log_pi, weight))
    for k in range(mu.size(0)):
        a = weight[:, k].unsqueeze(1)
        distance = component_distance(x, mu[k], sigma[k])
        m = distance.index_select(0, member)
        q = responsibilities(log_pi[k] - sigma[k].log().sum(-1) - a / 2 * m) * (a > 0)
        to_aq, to_q = [], []
        for c in range(mu.size(1)):
            s, (g1, g2), (y1, y2) = sigma[k, c], grad[:, k, c].unbind(1), encoding[:, k, c].unbind(1)
            total, count = mass[:, k, c].unsqueeze(-1).unbind(1)
            to_mu[k, c] = -((total / s * g1 + 2 * y1 * g2) / s).sum(0)
            to_sigma[k, c] = -((2 * y1 * g1 + (3 * y2 + 2 * count / s) * g2) / s).sum(0)
            z = ((x - mu[k, c]) / s).index_select(0, member)
            g1, g2 = (g1 / s).index_select(0, node), (g2 / s).index_select(0, node)
            to_total, to_count = grad_mass[:, k, c].index_select(0, node).unbind(1)
            to_aq.append((g1 * z + g2 * z.square()).sum(dim=1) + to_total)
            to_q.append(to_count - g2.sum(dim=1))
            if x_needs_grad:
                to_x.index_add_(0, member, a * q[:, c : c + 1] * (g1 + 2 * g2 * z) / s)
        by_aq, by_q = torch.stack(to_aq, dim=1), torch.stack(to_q, dim=1)
        by_q = by_q + a * by_aq
        to_logit = q * (by_q - (q * by_q).sum(dim=1, keepdim=True))
        to_distance = torch.zeros_like(distance).index_add_(0, member, -a / 2 * to_logit)
        to_weight[:, k] = (q * by_aq - m / 2 * to_logit).sum(dim=1)
        to_pi[k] = to_logit.sum(dim=0)
        to_sigma[k] -= to_pi[k].unsqueeze(1) / sigma[k]
        for c in range(mu.size(1)):  # the distance is a sum of z^2
            z = (x - mu[k, c]) / sigma[k, c]
            step = 2 * to_distance[:, c : c + 1] * z / sigma[k, c]
            to_x += step
            to_mu[k, c] -= step.sum(0)
            to_sigma[k, c] -= (step * z).sum(0)
    return (
        to_x if x_needs_grad else x.new_empty(0), to_mu, to_sigma, to_pi, to_weight if weight_needs_grad else x.new_empty(0)
    )  # fmt: skip


def _check_deviations(sigma: Tensor) -> None:
    """A deviation that is NaN makes the output NaN. One that is not positive would pass unseen."""
    if can_look(sigma):
        check_values(("sigma", sigma, ~(sigma <= 0), "be positive"))


def _pairs(mu: Tensor) -> list[tuple[int, int]]:
    return [(k, c) for k in range(mu.size(0)) for c in range(mu.size(1))]


@torch.library.register_fake("torch_gic::gaussian_encode", lib=OPS)
def _(
    x: Tensor, mu: Tensor, sigma: Tensor, log_pi: Tensor, weight: Tensor, member: Tensor, rowptr: Tensor
) -> tuple[Tensor, Tensor]:
    shape = (rowptr.numel() - 1, *mu.shape[:2], 2)
    return x.new_empty(*shape, x.size(1)), x.new_empty(shape)


@torch.library.register_fake("torch_gic::gaussian_encode_backward", lib=OPS)
def _(
    grad: Tensor,
    grad_mass: Tensor,
    encoding: Tensor,
    mass: Tensor,
    x: Tensor,
    mu: Tensor,
    sigma: Tensor,
    log_pi: Tensor,
    weight: Tensor,
    member: Tensor,
    rowptr: Tensor,
    x_needs_grad: bool = True,
    weight_needs_grad: bool = True,
) -> Gradients:
    to_x, to_weight = x.new_empty(x.shape if x_needs_grad else 0), x.new_empty(weight.shape if weight_needs_grad else 0)
    return to_x, x.new_empty(mu.shape), x.new_empty(mu.shape), x.new_empty(log_pi.shape), to_weight


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*output, *inputs)
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, grad: Tensor | None, grad_mass: Tensor | None) -> tuple[Tensor | None, ...]:
    if grad is None and grad_mass is None:
        return (None,) * 7
    encoding, mass, *inputs = ctx.saved_tensors
    grad = torch.zeros_like(encoding) if grad is None else grad
    grad_mass = torch.zeros_like(mass) if grad_mass is None else grad_mass
    needed = ctx.needs_input_grad
    if torch.is_grad_enabled():  # for a second derivative, PyTorch differentiates the reference
        wanted = [value for value, needs in zip(inputs, needed, strict=True) if needs]
        found = iter(torch.autograd.grad(reference(*inputs), wanted, (grad, grad_mass), create_graph=True, allow_unused=True))
        return tuple(next(found) if needs else None for needs in needed)
    backward = torch.ops.torch_gic.gaussian_encode_backward
    to_x, *to_mixture, to_weight = backward(grad, grad_mass, encoding, mass, *inputs, needed[0], needed[4])
    return (to_x if needed[0] else None, *to_mixture, to_weight if needed[4] else None, None, None)


torch.library.register_autograd("torch_gic::gaussian_encode", _backward, setup_context=_setup_context, lib=OPS)
