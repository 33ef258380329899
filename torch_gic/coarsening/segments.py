"""Choosing and counting in segments: what the references of coarsening share."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

GRID = 2.0**32  # objectives are compared in whole steps of 1 / GRID: rounding errors decide nothing
ROUNDING = 1e-9  # relative errors of sums: what is smaller decides nothing
LAST = torch.iinfo(torch.int64).max
UNSEEN = 8  # rounds between two looks of the host at whether they are enough; those too many change nothing


def on_grid(objective: Tensor) -> Tensor:
    return (objective * GRID).round().long()


def lowest(keys: tuple[Tensor, ...], segment: Tensor, num_segments: int, candidate: Tensor | None = None) -> Tensor:
    """The candidate of each segment whose keys come first, compared key after key; -1 for a segment without any."""
    candidate = torch.ones_like(segment, dtype=torch.bool) if candidate is None else candidate
    for key in (*keys, torch.arange(segment.numel(), device=segment.device)):
        key = torch.where(candidate, key, LAST)
        best = segment.new_full((num_segments,), LAST).scatter_reduce(0, segment, key, "amin")
        candidate = candidate & (key == best[segment])
    return torch.where(best < LAST, best, -1)


def sorted_by(entries: Tensor, *keys: Tensor) -> Tensor:
    """The entries in the order of the first key, of equals in that of the second, and so on."""
    for key in reversed(keys):
        entries = entries[torch.argsort(key[entries], stable=True)]
    return entries


def position_in(segment: Tensor, num_segments: int) -> Tensor:
    """How many entries of the same segment stand before each, in a sorted list of segments."""
    start = torch.searchsorted(segment, torch.arange(num_segments, device=segment.device))
    return torch.arange(segment.numel(), device=segment.device) - start[segment]


def running_sum_in(value: Tensor, position: Tensor, most: int | None = None) -> Tensor:
    """The sum of each number and those before it in the same segment, given how many these are (at most so many count). Never
    a difference of sums over several segments, in which those of small numbers would vanish beside large ones."""
    step, most = 1, value.numel() if most is None else most
    while step < min(most, value.numel()):
        value = value + F.pad(value[:-step], (step, 0)) * (position >= step)
        step *= 2
    return value


def totals_by(key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The entries in the order of their keys, which of them are the first of their key, and the sum over all that have it. In
    order of the entries on the CPU, as the kernels sum."""
    key, order = torch.sort(key, stable=True)
    first = torch.ones_like(key, dtype=torch.bool)
    first[1:] = key[1:] != key[:-1]
    position = first.cumsum(0) - 1
    return order, first, total_in(value[order], position, key.numel())[position]


def total_in(value: Tensor, segment: Tensor, num_segments: int) -> Tensor:
    """The sum over each segment. In order of the entries on the CPU, as the kernels sum."""
    return value.new_zeros(num_segments).index_add(0, segment, value)
