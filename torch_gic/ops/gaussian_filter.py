"""Encoding and filter in one: the gradients themselves are never formed."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from torch_gic.ops.encode_moments import encode_moments


def gaussian_filter(
    x: Tensor,
    mu: Tensor,
    sigma: Tensor,
    log_pi: Tensor,
    field_index: Tensor,
    field_weight: Tensor,
    num_nodes: int,
    weight: Tensor,
    bias: Tensor | None = None,
) -> Tensor:
    r"""A linear map of the encoding, ``gaussian_encode(...).flatten(1) @ weight.T + bias``, in one pass.

    The encoding is linear in the moments :math:`S_1 = \sum_j aQ`, :math:`S_0 = \sum_j Q`, :math:`X_1 = \sum_j aQ x_j` and
    :math:`X_2 = \sum_j aQ x_j^2` of each field (:func:`encode_moments`)

    .. math::
        \frac{\partial \zeta}{\partial \mu} = \frac{X_1 - \mu S_1}{\sigma^2}, \qquad
        \frac{\partial \zeta}{\partial \sigma} = \frac{X_2 - 2 \mu X_1 + \mu^2 S_1}{\sigma^3} - \frac{S_0}{\sigma},

    so that :math:`\mu` and :math:`\sigma` can go into the filter's weights instead. Attributes and means are taken relative to
    the mean of all means: numbers that then still cancel are those of components many deviations apart.

    Shapes:
        - **input:** as of :func:`gaussian_encode`, with a weight :math:`(F_{out}, K \cdot C \cdot 2 \cdot d)`
        - **output:** :math:`(N, F_{out})`
    """
    dtype = x.dtype
    if dtype in (torch.bfloat16, torch.float16):  # sums in float32
        x, mu, sigma, log_pi = x.float(), mu.float(), sigma.float(), log_pi.float()
    centre = mu.mean(dim=(0, 1)).detach()
    x, mu = x - centre, mu - centre
    distance = _distance(x, mu, sigma)
    prior = log_pi - sigma.log().sum(dim=-1)
    member, vertex = field_index
    moments, mass = encode_moments(x, distance, prior, field_weight.to(x.dtype), member, vertex, num_nodes)

    weight, bias = weight.to(x.dtype), None if bias is None else bias.to(x.dtype)
    inverse = 1 / sigma
    # With fewer vertices than filters, the gradients are smaller than the weights. A traced model cannot know.
    if not torch.compiler.is_compiling() and num_nodes < weight.size(0):
        first, second = moments.unbind(dim=3)
        total, count = mass.unsqueeze(-1).unbind(dim=3)
        to_mu = (first - mu * total) * inverse.square()
        to_sigma = (second - mu * (2 * first - mu * total)) * inverse.pow(3) - count * inverse
        out = F.linear(torch.stack([to_mu, to_sigma], dim=3).flatten(start_dim=1), weight, bias)
    else:
        from_mu, from_sigma = weight.view(weight.size(0), *mu.shape[:2], 2, mu.size(2)).unbind(dim=3)
        first, second = from_mu * inverse.square(), from_sigma * inverse.pow(3)
        to_total = (mu.square() * second).sum(-1) - (mu * first).sum(-1)
        to_count = -(from_sigma * inverse).sum(-1)
        to_moments = torch.stack([first - 2 * mu * second, second], dim=3).flatten(start_dim=1)
        to_mass = torch.stack([to_total, to_count], dim=3).flatten(start_dim=1)
        out = F.linear(moments.flatten(start_dim=1), to_moments) + F.linear(mass.flatten(start_dim=1), to_mass, bias)
    return out if torch.is_autocast_enabled(x.device.type) else out.to(dtype)


def _distance(x: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
    """The squared distance of each row of ``x`` to each component, the smallest of each scale taken off: ``[M, K, C]``.

    Only differences matter. They are formed in float64, in which the expanded square loses nothing that float32 could hold.
    """
    precise, mu, precision = x.double(), mu.double().flatten(0, 1), sigma.double().flatten(0, 1).pow(-2)
    with torch.autocast(x.device.type, enabled=False):
        distance = precise.square() @ precision.t() - 2 * precise @ (mu * precision).t() + (mu.square() * precision).sum(-1)
    distance = distance.view(x.size(0), *sigma.shape[:2])
    distance = (distance - distance.detach().amin(dim=2, keepdim=True)).clamp(max=torch.finfo(x.dtype).max)
    return distance.to(x.dtype)
