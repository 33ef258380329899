"""Batch normalisation that also works for a batch of one graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn.resolver import normalization_resolver


class LenientBatchNorm(torch.nn.BatchNorm1d):
    """A batch normalisation that takes a single row, in training too: the running statistics normalise it.

    PyG's :class:`~torch_geometric.nn.BatchNorm` with :obj:`allow_single_element=True` does the same, with two drawbacks. It
    skips the hooks of the module inside, which pruning, weight norms and FSDP need. It also asks for the number of rows in
    evaluation, which an exported program does not know.
    """

    def forward(self, x: Tensor) -> Tensor:
        if self.training and x.size(0) <= 1:
            return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        return super().forward(x)


def make_norm(norm: str | Callable[..., Any] | None, channels: int, kwargs: dict[str, Any]) -> torch.nn.Module:
    """The normalisation of PyG with this name; none for ``None``."""
    if norm is None:
        return torch.nn.Identity()
    if isinstance(norm, str) and norm.lower().replace("_", "") == "batchnorm":
        return LenientBatchNorm(channels, **kwargs)  # a batch may hold a single graph
    return normalization_resolver(norm, channels, **kwargs)
