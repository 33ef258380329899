"""What both directions of the encoding share: the sizes of their tiles, and the responsibilities of a block of entries."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from torch_gic.triton import gpu

MOST_COMPONENTS = 256  # all of a scale are in one tile
# (scale, component) and channels in a tile: twice as many spill (python -m benchmark.gpu_compile).
TILES = {torch.float32: (64, 32), torch.float64: (16, 16)}
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def tiles(scales: int, components: int, channels: int, dtype: torch.dtype) -> dict[str, Any]:
    """Types and sizes of the tiles, rows (scale, component) by channels: no side below 16, which products need."""
    sum_type = gpu.sum_type(dtype)
    rows, width = TILES[sum_type]
    padded = triton.next_power_of_2(components)
    at_once = min(triton.next_power_of_2(scales), max(rows // padded, 1))
    at_once = max(at_once, 16 // padded, 1)
    width = rows * width // (at_once * padded)  # fewer channels if a scale alone has more components
    width = max(16, min(triton.next_power_of_2(channels), width))
    kind = tl.float64 if sum_type == torch.float64 else tl.float32
    return {"T": kind, "PRECISION": gpu.PRECISION, "SCALES": at_once, "COMPONENTS": padded, "CHANNELS": width}


def supported(prior: Tensor) -> bool:
    return 0 < prior.size(1) <= MOST_COMPONENTS


def check(x: Tensor, distance: Tensor, prior: Tensor, weight: Tensor, member: Tensor, vertex: Tensor, num_nodes: int) -> None:
    """Shapes and types at once; values on the device, which says so later: looking at them would wait for it."""
    if x.dtype not in DTYPES:
        raise TypeError(f"Expected 'x' to hold float16, bfloat16, float32 or float64 values (got {x.dtype})")
    scales, components = prior.shape
    shapes = {
        "x": (x, [x.size(0), x.size(-1)], x.dtype),
        "distance": (distance, [x.size(0), scales, components], x.dtype),
        "prior": (prior, [scales, components], x.dtype),
        "weight": (weight, [vertex.size(0), scales], x.dtype),
        "member": (member, [vertex.size(0)], torch.int64),
        "vertex": (vertex, [vertex.size(0)], torch.int64),
    }
    gpu.check(shapes, x.device)
    for name, index, row, count in (("member", member, 0, x.size(0)), ("vertex", vertex, 1, num_nodes)):
        expected = f"Expected '{name}' (row {row} of the fields) to lie in [0, {count - 1}]"
        torch._assert_async(((index >= 0) & (index < count)).all(), f"{expected}: are these the fields of this graph?")


@triton.jit
def responsibilities(
    distance, prior, weight, entry, member, present, first_scale,
    scales: tl.constexpr, components: tl.constexpr, T: tl.constexpr, SCALES: tl.constexpr, COMPONENTS: tl.constexpr,
):  # fmt: skip
    """Weights ``[entries, SCALES, 1]``, distances and responsibilities ``[entries, SCALES, COMPONENTS]``, zero outside."""
    k, c = first_scale + tl.arange(0, SCALES), tl.arange(0, COMPONENTS)
    inside = (k < scales)[:, None] & (c < components)[None, :]
    known = present[:, None, None] & inside[None, :, :]
    at = entry[:, None] * scales + k[None, :]
    a = tl.load(weight + at, mask=present[:, None] & (k < scales)[None, :], other=0).to(T)[:, :, None]
    b = tl.load(prior + k[:, None] * components + c[None, :], mask=inside, other=0).to(T)
    place = (member[:, None, None] * scales + k[None, :, None]) * components + c[None, None, :]
    m = tl.load(distance + place, mask=known, other=0).to(T)
    logit = tl.where((c < components)[None, None, :], b[None, :, :] - a / 2 * m, -float("inf"))
    q = tl.exp(logit - tl.max(logit, axis=2)[:, :, None])
    q = q / tl.sum(q, axis=2)[:, :, None]
    return a, m, tl.where(known & (a > 0), q, 0)
