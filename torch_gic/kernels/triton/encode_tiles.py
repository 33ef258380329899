"""What both directions of the encoding share: operands relative to the means, distances, responsibilities, sizes of tiles."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from torch_gic.encoding.posterior import NEGLIGIBLE
from torch_gic.kernels.triton import gpu

MOST_COMPONENTS = 256  # all of a scale are in one tile
SAMPLE = 32  # rows
# (scale, component) and channels in a tile: twice as many spill (python -m benchmark.gpu.compile).
TILES = {torch.float32: (64, 32), torch.float64: (16, 16)}


class Prepared(NamedTuple):
    """What the kernels read beside the fields, all contiguous."""

    x: Tensor  # [M, d], like the means relative to a typical row
    mu: Tensor  # [K, C, d]
    precision: Tensor  # [K, C, d], 1 / sigma
    distance: Tensor  # [M, K, C], the smallest of each scale taken off; empty for one component
    prior: Tensor  # [K, C], log pi - sum log sigma; empty for one component


def check(x: Tensor, mu: Tensor, sigma: Tensor, log_pi: Tensor, weight: Tensor, member: Tensor, rowptr: Tensor) -> None:
    """Shapes and types. Fields have checked their values, and looking at them again would wait for the device."""
    if x.dtype not in TILES:
        raise TypeError(f"Expected 'x' to hold float32 or float64 values (got {x.dtype})")
    if mu.dim() != 3 or mu.size(1) == 0:
        raise ValueError(f"Expected 'mu' to have shape [K, C, d] with at least one component C (got {list(mu.shape)})")
    if rowptr.dim() != 1 or rowptr.numel() == 0:
        raise ValueError(f"Expected 'rowptr' to hold one number more than there are nodes (got shape {list(rowptr.shape)})")
    scales, components, channels = mu.shape
    entries = member.numel()
    shapes = {
        "x": (x, [x.size(0), channels], x.dtype),
        "mu": (mu, [scales, components, channels], x.dtype),
        "sigma": (sigma, [scales, components, channels], x.dtype),
        "log_pi": (log_pi, [scales, components], x.dtype),
        "weight": (weight, [entries, scales], x.dtype),
        "member": (member, [entries], torch.int64),
        "rowptr": (rowptr, [rowptr.numel()], torch.int64),
    }
    gpu.check(shapes, x.device)


def supported(mu: Tensor) -> bool:
    return mu.size(1) <= MOST_COMPONENTS


def prepare(x: Tensor, mu: Tensor, sigma: Tensor, log_pi: Tensor) -> Prepared:
    # Relative to the median of some rows, the features are small, and the sums hold little that has to cancel.
    step, count = max(x.size(0) // SAMPLE, 1), min(x.size(0), SAMPLE)
    sample = x.index_select(0, torch.arange(0, count * step, step, device=x.device))
    centre = sample.median(dim=0).values if count > 0 else x.new_zeros(x.size(1))
    x, mu, precision = (x - centre).contiguous(), (mu - centre).contiguous(), sigma.reciprocal().contiguous()
    if mu.size(1) == 1:
        return Prepared(x, mu, precision, x.new_empty(0), x.new_empty(0))
    prior = log_pi.double() - sigma.double().log().sum(dim=-1)
    return Prepared(x, mu, precision, _distances(x, mu, precision), prior.to(x.dtype).contiguous())


def _distances(x: Tensor, mu: Tensor, precision: Tensor) -> Tensor:
    """Squared, as in ``component_distance``, but as two products of matrices: in float64 the expanded square is exact enough
    for either type, and float64 has no TF32."""
    wide, mean, square = x.double(), mu.double().flatten(0, 1), precision.double().square().flatten(0, 1)
    distance = torch.addmm((mean.square() * square).sum(dim=1), wide.square(), square.t())
    distance = torch.addmm(distance, wide, (mean * square).t(), alpha=-2).view(x.size(0), *mu.shape[:2])
    distance = distance - distance.amin(dim=2, keepdim=True)
    return distance.clamp(max=torch.finfo(x.dtype).max).to(x.dtype)  # finite: a weight of zero times it is zero


def through_distances(
    prepared: Prepared, grad_distance: Tensor, grad_x: Tensor, grad_mu: Tensor, grad_sigma: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """What a distance ``sum ((x - mu) / sigma)^2`` hands on, in float64, where the expanded square is exact enough."""
    x, shape, dtype = prepared.x.double(), prepared.mu.shape, prepared.x.dtype
    mu, precision = prepared.mu.double().flatten(0, 1), prepared.precision.double().flatten(0, 1)
    square, g = precision.square(), 2 * grad_distance.double()
    if grad_x.numel() > 0:
        grad_x = (grad_x + x * (g @ square) - g @ (mu * square)).to(dtype)
    zero, one, two = g.sum(dim=0).unsqueeze(1), g.t() @ x, g.t() @ x.square()
    step, spread = (one - mu * zero) * square, (two - mu * (2 * one - mu * zero)) * square * precision
    return grad_x, grad_mu - step.view(shape).to(dtype), grad_sigma - spread.view(shape).to(dtype)


def tiles(scales: int, components: int, channels: int, dtype: torch.dtype) -> dict[str, Any]:
    """Types and sizes of the tiles, rows (scale, component) by channels: no side below 16, which products need."""
    rows, width = TILES[dtype]
    padded = triton.next_power_of_2(components)
    at_once = min(triton.next_power_of_2(scales), max(rows // padded, 1))
    at_once = max(at_once, 16 // padded, 1)
    width = min(width, rows * width // (at_once * padded))  # fewer channels if a scale alone has more components
    width = max(16, min(triton.next_power_of_2(channels), width))
    return {
        "scales": scales,
        "components": components,
        "channels": channels,
        "T": tl.float64 if dtype == torch.float64 else tl.float32,
        "PRECISION": gpu.PRECISION,
        "NEGLIGIBLE": NEGLIGIBLE,
        "ENTRIES": 16,
        "SCALES": at_once,
        "COMPONENTS": padded,
        "CHANNELS": width,
    }


@triton.jit
def responsibilities(
    distance, prior, weight, entry, member, present, first_scale,
    scales: tl.constexpr, components: tl.constexpr, T: tl.constexpr, NEGLIGIBLE: tl.constexpr, ENTRIES: tl.constexpr,
    SCALES: tl.constexpr, COMPONENTS: tl.constexpr,
):  # fmt: skip
    """Weights ``[ENTRIES, SCALES, 1]``, distances and responsibilities ``[ENTRIES, SCALES, COMPONENTS]``, zero outside.

    One component has all: neither distances nor prior are read."""
    k, c = first_scale + tl.arange(0, SCALES), tl.arange(0, COMPONENTS)
    at = entry[:, None] * scales + k[None, :]
    a = tl.load(weight + at, mask=present[:, None] & (k < scales)[None, :], other=0)[:, :, None]
    if components == 1:
        m = tl.zeros([ENTRIES, SCALES, COMPONENTS], T)
        q = tl.where(a > 0, tl.full([ENTRIES, SCALES, COMPONENTS], 1, T), 0)
    else:
        inside = (k < scales)[:, None] & (c < components)[None, :]
        known = present[:, None, None] & inside[None, :, :]
        b = tl.load(prior + k[:, None] * components + c[None, :], mask=inside, other=0)
        place = (member[:, None, None] * scales + k[None, :, None]) * components + c[None, None, :]
        m = tl.load(distance + place, mask=known, other=0)
        exponent = tl.where((c < components)[None, None, :], b[None, :, :] - a / 2 * m, -float("inf"))
        excess = exponent - tl.max(exponent, axis=2)[:, :, None]
        q = tl.where(excess < NEGLIGIBLE, 0, tl.exp(excess))
        q = q / tl.sum(q, axis=2)[:, :, None]
        q = tl.where(known & (a > 0), q, 0)
    return a, m, q


@triton.jit
def load_mixture(
    mu, precision, k, c, channel, scales: tl.constexpr, components: tl.constexpr, channels: tl.constexpr
):  # fmt: skip
    """Means and reciprocal deviations of rows (scale k, component c) by channels, zero outside."""
    inside = ((k < scales) & (c < components))[:, None] & (channel < channels)[None, :]
    at = ((k * components + c) * channels)[:, None] + channel[None, :]
    return tl.load(mu + at, mask=inside, other=0), tl.load(precision + at, mask=inside, other=0)


@triton.jit
def moment_gradients(
    grad, mu, precision, node, first_scale, channel,
    scales: tl.constexpr, components: tl.constexpr, channels: tl.constexpr, SCALES: tl.constexpr, COMPONENTS: tl.constexpr,
):  # fmt: skip
    """Of the moments X1 and X2 of a field, (scale, component) by channel, and what each channel adds to those of the masses
    S1 and S0: the encoding is a linear function of the four."""
    row = tl.arange(0, SCALES * COMPONENTS)
    k, c = first_scale + row // COMPONENTS, row % COMPONENTS
    inside = ((k < scales) & (c < components))[:, None] & (channel < channels)[None, :]
    at = grad + (((node * scales + k) * components + c) * 2 * channels)[:, None] + channel[None, :]
    g1, g2 = tl.load(at, mask=inside, other=0), tl.load(at + channels, mask=inside, other=0)
    mean, inverse = load_mixture(mu, precision, k, c, channel, scales, components, channels)
    first, second = g1 * inverse * inverse, g2 * inverse * inverse * inverse
    return first - 2 * mean * second, second, mean * (mean * second - first), -g2 * inverse
