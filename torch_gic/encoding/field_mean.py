"""The mean features of a field."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_gic.encoding.gaussian_encode import gaussian_encode
from torch_gic.fields.fields import Fields


def field_mean(x: Tensor, fields: Fields) -> Tensor:
    r"""The mean of the features in the field of each node, weighted as in the first scale

    .. math::
        \bar{\mathbf{x}}_i = \frac{\sum_j a_{ij1} \, \mathbf{x}_j}{\sum_j a_{ij1}},

    zero where the field is empty. The sum is the gradient to the mean of one Gaussian of mean 0 and deviation 1: the same
    kernels compute it, and nothing of size :math:`E \cdot d` is formed.

    Shapes:
        - **input:** features :math:`(M, d)`, fields of :math:`N` nodes
        - **output:** :math:`(N, d)`, in float32 for half precision
    """
    weight = fields.weight[:, :1]
    zero, one = x.new_zeros(1, 1, x.size(1)), x.new_ones(1, 1, x.size(1))
    total = gaussian_encode(x, zero, one, zero[..., 0], fields, weight).flatten(1)[:, : x.size(1)]
    mass = total.new_zeros(fields.num_nodes).index_add(0, fields.index[1], weight[:, 0].to(total.dtype))
    return total / mass.masked_fill(mass == 0, 1).unsqueeze(1)
