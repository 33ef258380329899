"""Edge-induced Gaussian encoding: each field as the gradient of its log-likelihood under a mixture."""

from __future__ import annotations

import torch
from torch import Tensor


def gaussian_encode(
    x: Tensor,
    mu: Tensor,
    sigma: Tensor,
    log_pi: Tensor,
    field_index: Tensor,
    field_weight: Tensor,
    num_nodes: int,
) -> Tensor:
    r"""The Fisher gradients of the edge-induced Gaussian mixture, Eqns. (1) to (3) of the
    `"Gaussian-Induced Convolution for Graphs" <https://arxiv.org/abs/1811.04393>`_ paper

    .. math::
        \frac{\partial \zeta_i}{\partial \mu_c} &= \sum_j a_{ij} Q_{jc} \, \frac{x_j - \mu_c}{\sigma_c^2}
        = \frac{1}{\sigma_c} \sum_j a_{ij} Q_{jc} \, z_{jc}

        \frac{\partial \zeta_i}{\partial \sigma_c} &= \sum_j Q_{jc} \, \frac{a_{ij} (x_j - \mu_c)^2 - \sigma_c^2}{\sigma_c^3}
        = \frac{1}{\sigma_c} \sum_j Q_{jc} \, (a_{ij} z_{jc}^2 - 1)

    with :math:`z_{jc} = (x_j - \mu_c) / \sigma_c`, summed over the entries of positive weight :math:`a_{ij}`, and

    .. math::
        Q_{jc} = \mathrm{softmax}_c \Bigl( \log \pi_c - \sum_d \log \sigma_{cd} - \frac{a_{ij}}{2} \sum_d z_{jcd}^2 \Bigr).

    Nothing of size :math:`E \cdot C \cdot d` is formed.

    Args:
        x (torch.Tensor): Attributes of the field members.
        mu (torch.Tensor): Means of the components.
        sigma (torch.Tensor): Standard deviations of the components, positive.
        log_pi (torch.Tensor): Logarithms of the component weights.
        field_index (torch.Tensor): Field entries: row 0 the member :math:`j`, row 1 the vertex :math:`i`.
        field_weight (torch.Tensor): Weight :math:`a_{ij}` of each entry in each scale; zero: not in the field.
        num_nodes (int): The number of vertices :math:`i`.

    Shapes:
        - **input:** attributes :math:`(M, d)`, means and deviations :math:`(K, C, d)`, log weights :math:`(K, C)`,
          field entries :math:`(2, E)`, field weights :math:`(E, K)`
        - **output:** gradients :math:`(N, K, C, 2, d)`, 0: to :math:`\mu`, 1: to :math:`\sigma`
    """
    member, vertex = field_index
    scales = []
    for k in range(field_weight.size(1)):
        weight = field_weight[:, k]
        posterior = component_posterior(x, mu[k], sigma[k], log_pi[k], member, weight)  # Q, [E, C]
        components = []
        for c in range(mu.size(1)):
            # Centring each component by itself, instead of expanding the square, is what keeps float32 exact for
            # attributes far from zero: the sums then hold nothing that has to cancel.
            z = (x - mu[k, c]) / sigma[k, c]
            q = posterior[:, c]
            terms = (weight * q).unsqueeze(1) * torch.cat([z, z.square()], dim=1).index_select(0, member)
            first, second = z.new_zeros(num_nodes, terms.size(1)).index_add(0, vertex, terms).chunk(2, dim=1)
            count = q.new_zeros(num_nodes).index_add(0, vertex, q).unsqueeze(1)
            components.append(torch.stack([first / sigma[k, c], (second - count) / sigma[k, c]], dim=1))
        scales.append(torch.stack(components, dim=1))
    return torch.stack(scales, dim=1)


def component_posterior(x: Tensor, mu: Tensor, sigma: Tensor, log_pi: Tensor, member: Tensor, weight: Tensor) -> Tensor:
    r"""The responsibility :math:`Q_{jc}` of each component for each field entry of one scale, zero where the weight is.

    The weight's own normaliser :math:`a^{d/2}` is the same for all components and cancels.
    """
    # Mahalanobis distances of attributes far from all means are huge and nearly equal. Only their differences enter:
    # taken in float64 before rounding, they survive, and the nearest component keeps the exponent 0 for any weight.
    distance = torch.stack(
        [((x.double() - m) / s).square().sum(-1) for m, s in zip(mu.double(), sigma.double(), strict=True)], dim=1
    )
    distance = distance - distance.detach().amin(dim=1, keepdim=True)
    distance = distance.clamp(max=torch.finfo(x.dtype).max).to(x.dtype)  # finite: a weight of zero times it is zero
    prior = log_pi - sigma.log().sum(-1)
    posterior = torch.softmax(prior - weight.unsqueeze(1) / 2 * distance.index_select(0, member), dim=1)
    return posterior * (weight > 0).unsqueeze(1)
