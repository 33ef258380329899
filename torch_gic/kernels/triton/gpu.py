"""What all launches share: the device, the order of the entries, sums over them."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

# Loads one step ahead instead of two, Triton's default: that leaves the encoding enough registers and shared memory.
OPTIONS = {"num_warps": 4, "num_stages": 2}
# How float32 numbers are multiplied. NVIDIA's matrix units take only ten bits of each (TF32): three products of the halves
# of both are as exact as float32 to a few units in the last place. AMD's multiply float32 itself.
PRECISION = "ieee" if torch.version.hip else "tf32x3"


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **constants: Any) -> None:
    """Runs a kernel on the device of its first argument and the current stream of that device, and does not wait for it.

    Triton asks PyTorch for the current device, which need not be that of the tensors.
    """
    if 0 in grid:  # no node, or no channel: nothing to write
        return
    first = arguments[0]
    with torch.cuda.device(first.device) if first.is_cuda else nullcontext():
        kernel[grid](*arguments, **(OPTIONS | constants))


def check(shapes: dict[str, tuple[Tensor, list[int], torch.dtype]], device: torch.device) -> None:
    """Whether operands have the shape and the type that they should, and are on the device."""
    for name, (value, shape, dtype) in shapes.items():
        if list(value.shape) != shape:
            raise ValueError(f"Expected '{name}' to have shape {shape} (got {list(value.shape)})")
        if value.dtype != dtype:
            raise TypeError(f"Expected '{name}' to hold {dtype} values (got {value.dtype})")
        if value.device != device:
            raise ValueError(f"Expected '{name}' to be on {device}, as the others are (got {value.device})")


def sum_type(dtype: torch.dtype) -> torch.dtype:
    """What numbers of this type are summed in."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def segments(index: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The entries by segment, in their order inside each, and where each segment begins and ends.

    They are always sorted here: asking the device whether they are sorted already would wait for it. 32-bit keys are used if
    they are large enough, since they are half the bytes.
    """
    key = index.int() if count < 2**31 else index
    key, order = torch.sort(key, stable=True)
    return order, torch.searchsorted(key, torch.arange(count + 1, device=key.device, dtype=key.dtype))


def segment_sum(value: Tensor, order: Tensor, ptr: Tensor, out: Tensor, add: bool = False) -> None:
    """The sum of the rows of each segment, always in the same order; on request in addition to what is there."""
    width = value.size(1)
    block = min(64, triton.next_power_of_2(max(width, 1)))
    grid = (out.size(0), triton.cdiv(width, block))
    launch(_segment_sum, grid, value, order, ptr, out, width=width, ADD=add, ENTRIES=16, WIDTH=block)


@triton.jit
def _segment_sum(value, order, ptr, out, width: tl.constexpr, ADD: tl.constexpr, ENTRIES: tl.constexpr, WIDTH: tl.constexpr):
    segment = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    begin, end = tl.load(ptr + segment), tl.load(ptr + segment + 1)
    total = tl.zeros([WIDTH], value.dtype.element_ty)
    for first in range(begin, end, ENTRIES):
        slot = first + tl.arange(0, ENTRIES)
        entry = tl.load(order + slot, mask=slot < end, other=0)
        inside = (slot < end)[:, None] & (column < width)[None, :]
        total += tl.sum(tl.load(value + entry[:, None] * width + column[None, :], mask=inside, other=0), axis=0)
    to = out + segment * width + column
    if ADD:
        total += tl.load(to, mask=column < width, other=0)
    tl.store(to, total, mask=column < width)
