"""Batch normalisation that also works for a batch of one graph."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


class LenientBatchNorm(torch.nn.BatchNorm1d):
    """Normalises a single row by the running statistics, in training too: it has no statistics of its own.

    PyG's :class:`~torch_geometric.nn.BatchNorm` with :obj:`allow_single_element=True` does the same, with two drawbacks. It
    takes the parameters of the module inside, whose hooks then do not run: those of pruning, norms of weights and FSDP. It
    also asks for the number of rows in evaluation, which an exported program does not know.
    """

    def forward(self, x: Tensor) -> Tensor:
        if self.training and x.size(0) <= 1:
            return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        return super().forward(x)
