"""The mean and the deviation of each channel over all batches so far."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import guard_or_false, guard_or_true

MOMENTUM = 0.1


class RunningStatistics(torch.nn.Module):
    """Remembers the mean and the standard deviation of each channel over the nodes.

    Older batches count less and less. The first batch alone sets the initial statistics: they do not start at 0 and 1.

    Args:
        channels (int): Size of each feature vector, or :obj:`-1` to take it from the first input.
    """

    running: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels
        # Sums over all batches, in which older batches have less weight: of means, of deviations and of 1.
        self.register_buffer("running", torch.empty(3, max(channels, 0)))
        self.reset_statistics()

    def reset_statistics(self) -> None:
        torch.nn.init.zeros_(self.running)

    def learns(self, x: Tensor) -> bool | Tensor:
        """Whether the statistics of ``x`` are to be remembered: in training, if it has more than one node.

        A traced model may not know the number of nodes, such as behind a pooling. It then gets a tensor.
        """
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
        """Adds the statistics of a batch: the mean, the deviation and 1 for each channel."""
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
    """Converts half precision to float32: its sums and squares would overflow."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
