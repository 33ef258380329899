"""Batch normalisation that a batch of one graph does not stop."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


class LenientBatchNorm(torch.nn.BatchNorm1d):
    """Normalises a single row, which has no statistics of its own, by the running ones also in training.

    PyG's :class:`~torch_geometric.nn.BatchNorm` with :obj:`allow_single_element=True` does so by way of the parameters of the
    module inside, whose hooks then do not run (pruning, norms of weights, FSDP), and asks for the number of rows in
    evaluation too, where an exported program cannot tell it.
    """

    def forward(self, x: Tensor) -> Tensor:
        if self.training and x.size(0) <= 1:
            return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        return super().forward(x)
