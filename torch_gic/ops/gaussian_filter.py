"""Encoding and filter in one: the gradients themselves are never formed."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from torch_gic.ops.encode_moments import encode_moments
from torch_gic.ops.fold_filter import fold_filter


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

    so that :math:`\mu` and :math:`\sigma` can go into the filter's weights instead (:func:`fold_filter`). Attributes and means
    are taken relative to the mean of all means: numbers that then still cancel are those of components many deviations apart.

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
    to_moments, to_mass = fold_filter(weight, mu, sigma)
    out = F.linear(moments.flatten(start_dim=1), to_moments) + F.linear(mass.flatten(start_dim=1), to_mass, bias)
    return out if torch.is_autocast_enabled(x.device.type) else out.to(dtype)


def _distance(x: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
    """The squared distance of each row of ``x`` to each component, the smallest of each scale taken off: ``[M, K, C]``.

    Only differences matter. They are formed in float64, in which the expanded square loses nothing that float32 could hold.
    """
    precise, mu, precision = x.double(), mu.double().flatten(0, 1), sigma.double().flatten(0, 1).pow(-2)
    with torch.autocast(x.device.type, enabled=False):
        offset = (mu.square() * precision).sum(-1)
        distance = torch.addmm(offset, precise.square(), precision.t()).addmm(precise, (-2 * mu * precision).t())
    distance = distance.view(x.size(0), *sigma.shape[:2])
    distance = (distance - distance.detach().amin(dim=2, keepdim=True)).clamp(max=torch.finfo(x.dtype).max)
    return distance.to(x.dtype)
