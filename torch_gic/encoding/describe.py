"""What a filter sees of an encoding: how many members each component has, where they are and how they spread."""

from __future__ import annotations

import torch
from torch import Tensor

SHRINKAGE = 0.1  # of the whole mass of a field: a component that has less of it than this tells little of its members


def describe(encoding: Tensor, mass: Tensor, sigma: Tensor) -> Tensor:
    r"""The members of each field, component by component: their number, their mean and their spread

    .. math::
        \mathbf{y}_{ikc} = \Bigl[ \ln \Bigl( 1 + \sum_j Q_{jc} \Bigr) \, \Big\Vert \,
        \frac{\sum_j a_{ij} Q_{jc} \, \mathbf{z}_{jc}}{m_{ic}} \, \Big\Vert \,
        \frac{\sum_j a_{ij} Q_{jc} \, (\mathbf{z}_{jc}^2 - 1)}{m_{ic}} \Bigr], \qquad
        m_{ic} = \sum_j a_{ij} Q_{jc} + \tfrac{1}{10} \sum_{j, c^{\prime}} a_{ij} Q_{jc^{\prime}},

    with :math:`\mathbf{z}_{jc} = (\mathbf{x}_j - \mu_c) / \sigma_c`. These are the gradients of
    :func:`~torch_gic.encoding.gaussian_encode` in units of the deviation and for each unit of mass: a field of many members
    gives numbers of the same size as one of few. The second part of :math:`m` draws components with few members to zero. An
    empty field gives zeros.

    Args:
        encoding (torch.Tensor): The gradients.
        mass (torch.Tensor): The masses :math:`\sum_j a_{ij} Q_{jc}` and :math:`\sum_j Q_{jc}`.
        sigma (torch.Tensor): Standard deviations of the components.

    Shapes:
        - **input:** gradients :math:`(N, K, C, 2, d)`, masses :math:`(N, K, C, 2)`, deviations :math:`(K, C, d)`
        - **output:** :math:`(N, K \, C \, (2 d + 1))`
    """
    weighted, count = mass.unbind(dim=-1)
    whole = weighted.sum(dim=-1, keepdim=True)
    inverse = torch.where(whole > 0, weighted + SHRINKAGE * whole, 1).reciprocal()[..., None, None]
    # The gradient to the deviations takes 1 from the square of each member, whatever its weight.
    excess = torch.stack([torch.zeros_like(count), count - weighted], dim=-1).unsqueeze(-1)
    moments = (encoding * sigma.to(encoding.dtype).unsqueeze(-2) + excess) * inverse
    return torch.cat([moments.flatten(start_dim=1), count.log1p().flatten(start_dim=1)], dim=1)
