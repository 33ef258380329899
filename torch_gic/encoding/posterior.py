"""The responsibilities: to which component a field member belongs."""

from __future__ import annotations

import torch
from torch import Tensor

# The responsibility of a component is set to zero if its exponent is this far below the highest one. It would change nothing,
# but times a weight it may be a subnormal number, which some processors multiply far more slowly. The same number is
# kNegligible in csrc/common/vector.h.
NEGLIGIBLE = -64.0


def component_posterior(x: Tensor, mu: Tensor, sigma: Tensor, log_pi: Tensor, member: Tensor, weight: Tensor) -> Tensor:
    r"""The responsibility of each component for each field entry of one scale, zero where the weight is

    .. math::
        Q_{jc} = \mathrm{softmax}_c \Bigl( \log \pi_c - \sum_d \log \sigma_{cd}
        - \frac{a_{ij}}{2} \sum_d \frac{(x_{jd} - \mu_{cd})^2}{\sigma_{cd}^2} \Bigr).

    The weight's own normaliser :math:`a^{d/2}` is the same for all components and cancels.

    Shapes:
        - **input:** features :math:`(M, d)`, means and deviations :math:`(C, d)`, log weights :math:`(C)`, members
          :math:`(E)`, field weights :math:`(E)`
        - **output:** :math:`(E, C)`
    """
    present = (weight > 0).unsqueeze(1)
    if mu.size(0) == 1:  # one component takes all, whatever the distances are
        return present.to(x.dtype)
    prior = log_pi - sigma.log().sum(-1)
    exponent = prior - weight.unsqueeze(1) / 2 * component_distance(x, mu, sigma).index_select(0, member)
    return responsibilities(exponent) * present


def responsibilities(exponent: Tensor) -> Tensor:
    """The softmax over the last dimension, exactly zero where an exponent is negligible."""
    excess = exponent - exponent.detach().amax(dim=-1, keepdim=True)
    return torch.softmax(excess.masked_fill(excess < NEGLIGIBLE, -torch.inf), dim=-1)


def component_distance(x: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
    """The squared distance of each row of ``x`` to each component, minus the smallest of the row: ``[M, C]``.

    Features far from all means have huge, nearly equal distances, and only their differences matter. They are computed in
    float64, so rounding does not lose them. The nearest component has the exponent 0 for any weight.
    """
    x, mu, precision = x.double(), mu.double(), sigma.double().reciprocal()
    distance = torch.stack([((x - m) * p).square().sum(-1) for m, p in zip(mu, precision, strict=True)], dim=1)
    distance = distance - distance.detach().amin(dim=1, keepdim=True)
    return distance.clamp(max=torch.finfo(sigma.dtype).max).to(sigma.dtype)  # finite: a weight of zero times it is zero
