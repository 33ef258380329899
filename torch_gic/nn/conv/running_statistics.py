"""The mean and the deviation of each channel over all batches so far."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

MOMENTUM = 0.1


class RunningStatistics(torch.nn.Module):
    """Remembers the mean and the standard deviation of each channel over the nodes.

    Older batches count less and less. The first batch alone decides at the start, not a mean of 0 and a deviation of 1.

    Args:
        channels (int): Size of each feature vector, or :obj:`-1` to take it from the first input.
    """

    running: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels
        # Sums over the batches so far with falling weights: of means, of deviations, and of the weights themselves.
        self.register_buffer("running", torch.empty(3, max(channels, 0)))
        self.reset_statistics()

    def reset_statistics(self) -> None:
        torch.nn.init.zeros_(self.running)

    def learns(self, x: Tensor) -> bool:
        """Whether statistics are taken of ``x``: in training, of more than one node."""
        if self.channels == -1:
            self._materialize(x.size(1))
        return self.training and x.size(0) > 1

    @torch.no_grad()
    def remember(self, statistics: Tensor) -> None:
        """Takes in the mean, the deviation and 1 of each channel in a batch."""
        self.running.lerp_(statistics.to(self.running.dtype), MOMENTUM)

    def _materialize(self, channels: int) -> None:
        self.channels = channels
        self.running = self.running.new_zeros(3, channels)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        running = state_dict.get(prefix + "running")
        if self.channels == -1 and running is not None and running.numel() > 0:
            self._materialize(running.size(1))
        super()._load_from_state_dict(state_dict, prefix, *args)


def single(x: Tensor) -> Tensor:
    """In float32 for half precision, whose sums and squares would overflow."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
