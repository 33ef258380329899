"""The mean and the deviation of each channel over all batches so far."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import guard_or_false, guard_or_true

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

    def learns(self, x: Tensor) -> bool | Tensor:
        """Whether statistics are taken of ``x``: in training, of more than one node. A tensor in a traced model that does not
        know the number of nodes: behind a pooling."""
        if self.channels == -1:
            self._materialize(x.size(1))
        if not self.training:
            return False
        several = x.size(0) > 1
        if torch.compiler.is_compiling() and guard_or_true(several) and not guard_or_false(several):
            return torch.full((), x.size(0), device=x.device) > 1
        return bool(several)

    @torch.no_grad()
    def remember(self, statistics: Tensor, learns: bool | Tensor) -> None:
        """Takes in the mean, the deviation and 1 of each channel in a batch."""
        statistics = statistics.to(self.running.dtype)
        if isinstance(learns, Tensor):
            statistics = torch.where(learns, statistics, self.running)
        self.running.lerp_(statistics, MOMENTUM)

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
