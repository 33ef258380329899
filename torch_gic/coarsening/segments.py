"""Choosing and counting in segments: what the references of coarsening share."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

GRID = 2.0**32  # objectives are compared in whole steps of 1 / GRID: rounding errors decide nothing
ROUNDING = 1e-9  # relative errors of sums: what is smaller decides nothing
LAST = torch.iinfo(torch.int64).max


def on_grid(objective: Tensor) -> Tensor:
    return (objective * GRID).round().long()


def lowest(keys: tuple[Tensor, ...], segment: Tensor, num_segments: int) -> Tensor:
    """The entry of each segment whose keys come first, compared key after key; -1 for a segment without any."""
    candidate = torch.ones_like(segment, dtype=torch.bool)
    for key in keys:
        key = torch.where(candidate, key, LAST)
        best = segment.new_full((num_segments,), LAST).scatter_reduce(0, segment, key, "amin")
        candidate = candidate & (key == best[segment])
    entry = candidate.nonzero().view(-1)
    return segment.new_full((num_segments,), -1).scatter(0, segment[entry], entry)


def sorted_by(entries: Tensor, *keys: Tensor) -> Tensor:
    """The entries in the order of the first key, of equals in that of the second, and so on."""
    for key in reversed(keys):
        entries = entries[torch.argsort(key[entries], stable=True)]
    return entries


def position_in(segment: Tensor, num_segments: int) -> Tensor:
    """How many entries of the same segment stand before each, in a sorted list of segments."""
    count = torch.bincount(segment, minlength=num_segments)
    return torch.arange(segment.numel(), device=segment.device) - (count.cumsum(0) - count)[segment]


def running_sum(value: Tensor) -> Tensor:
    """The sum of each number and those before it in the last dimension.

    In deterministic mode, PyTorch refuses ``cumsum`` on GPUs: there, in steps of doubled length, always in the same order.
    """
    if value.is_cuda and torch.are_deterministic_algorithms_enabled():
        return doubled_sums(value)
    return value.cumsum(-1)


def doubled_sums(value: Tensor) -> Tensor:
    step = 1
    while step < value.size(-1):
        value = value + F.pad(value[..., :-step], (step, 0))
        step *= 2
    return value


def running_sum_in(value: Tensor, position: Tensor) -> Tensor:
    """The sum of each number and those before it in the same segment, given how many these are. Never a difference of sums
    over several segments, in which those of small numbers would vanish beside large ones."""
    step = 1
    while step < value.numel():
        value = value + F.pad(value[:-step], (step, 0)) * (position >= step)
        step *= 2
    return value


def total_in(value: Tensor, segment: Tensor, num_segments: int) -> Tensor:
    """The sum over each segment. In order of the entries on the CPU, as the kernels sum."""
    return value.new_zeros(num_segments).index_add(0, segment, value)
