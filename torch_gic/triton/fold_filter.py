"""Means and deviations folded into the weights of a filter: one pass over them, instead of a dozen of the reference."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from torch_gic.triton import gpu

CHANNELS = 32  # of a tile


def fold_filter(weight: Tensor, mu: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
    """See :func:`torch_gic.ops.fold_filter`."""
    components, channels = _check(weight, mu, sigma)
    to_moments, to_mass = weight.new_empty(weight.shape), weight.new_empty(weight.size(0), components * 2)
    num_rows, rows = weight.size(0) * components, 32
    operands = weight.contiguous(), mu.contiguous(), sigma.contiguous(), to_moments, to_mass, num_rows, components
    gpu.launch(_fold, (triton.cdiv(num_rows, rows),), *operands, ROWS=rows, **_constants(weight, channels))
    return to_moments, to_mass


def fold_filter_backward(
    grad_moments: Tensor, grad_mass: Tensor, weight: Tensor, mu: Tensor, sigma: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """See :func:`torch_gic.ops.fold_filter`."""
    components, channels = _check(weight, mu, sigma)
    filters = weight.size(0)
    mass = {"grad_mass": (grad_mass, [filters, components * 2], weight.dtype)}
    gpu.check({"grad_moments": (grad_moments, list(weight.shape), weight.dtype), **mass}, weight.device)
    gradients = weight.new_empty(weight.shape), mu.new_empty(mu.shape), sigma.new_empty(sigma.shape)
    operands = [value.contiguous() for value in (grad_moments, grad_mass, weight, mu, sigma)]
    constants = _constants(weight, channels)
    grid = (components, triton.cdiv(channels, constants["CHANNELS"]))
    gpu.launch(_fold_gradients, grid, *operands, *gradients, filters, components, FILTERS=32, **constants)
    return gradients


def _check(weight: Tensor, mu: Tensor, sigma: Tensor) -> tuple[int, int]:
    """The number of components in all scales, and that of the channels."""
    components, channels, dtype = mu.size(0) * mu.size(1), mu.size(2), weight.dtype
    shapes = {
        "weight": (weight, [weight.size(0), components * 2 * channels], dtype),
        "mu": (mu, list(mu.shape), dtype),
        "sigma": (sigma, list(mu.shape), dtype),
    }
    gpu.check(shapes, weight.device)
    return components, channels


def _constants(weight: Tensor, channels: int) -> dict[str, Any]:
    kind = tl.float64 if weight.dtype == torch.float64 else tl.float32
    return {"channels": channels, "T": kind, "CHANNELS": min(CHANNELS, triton.next_power_of_2(max(channels, 1)))}


@triton.jit
def _fold(
    weight, mu, sigma, to_moments, to_mass, num_rows, components,
    channels: tl.constexpr, T: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """A row is what one filter has for one component: its weights of the gradients of mean and deviation."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    known, component = row < num_rows, row % components
    total = tl.zeros([ROWS], T)
    count = tl.zeros([ROWS], T)
    for first in range(0, channels, CHANNELS):
        channel = first + tl.arange(0, CHANNELS)
        inside = known[:, None] & (channel < channels)[None, :]
        place = component[:, None] * channels + channel[None, :]
        m = tl.load(mu + place, mask=inside, other=0).to(T)
        s = tl.where(inside, tl.load(sigma + place, mask=inside, other=0).to(T), 1)
        at = row[:, None] * (2 * channels) + channel[None, :]
        from_sigma = tl.load(weight + at + channels, mask=inside, other=0).to(T)
        one = tl.load(weight + at, mask=inside, other=0).to(T) / (s * s)
        two = from_sigma / (s * s * s)
        tl.store(to_moments + at, one - 2 * m * two, mask=inside)
        tl.store(to_moments + at + channels, two, mask=inside)
        total += tl.sum(m * (m * two - one), axis=1)
        count -= tl.sum(from_sigma / s, axis=1)
    tl.store(to_mass + 2 * row, total, mask=known)
    tl.store(to_mass + 2 * row + 1, count, mask=known)


@triton.jit
def _fold_gradients(
    grad_moments, grad_mass, weight, mu, sigma, grad_weight, grad_mu, grad_sigma, filters, components,
    channels: tl.constexpr, T: tl.constexpr, FILTERS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """One component and some channels, for all filters: the gradients of its mean and deviation are sums over them."""
    component = tl.program_id(0)
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    place = component * channels + channel
    m = tl.load(mu + place, mask=channel < channels, other=0).to(T)[None, :]
    s = tl.load(sigma + place, mask=channel < channels, other=0).to(T)
    s = tl.where(channel < channels, s, 1)[None, :]
    to_mu = tl.zeros([CHANNELS], T)
    to_sigma = tl.zeros([CHANNELS], T)
    for first in range(0, filters, FILTERS):
        out = first + tl.arange(0, FILTERS)
        inside = (out < filters)[:, None] & (channel < channels)[None, :]
        row = out.to(tl.int64) * components + component
        total = tl.load(grad_mass + 2 * row, mask=out < filters, other=0).to(T)[:, None]
        count = tl.load(grad_mass + 2 * row + 1, mask=out < filters, other=0).to(T)[:, None]
        at = row[:, None] * (2 * channels) + channel[None, :]
        from_one = tl.load(grad_moments + at, mask=inside, other=0).to(T)
        from_two = tl.load(grad_moments + at + channels, mask=inside, other=0).to(T)
        w_mu = tl.load(weight + at, mask=inside, other=0).to(T)
        w_sigma = tl.load(weight + at + channels, mask=inside, other=0).to(T)
        one = from_one - m * total
        two = from_two - m * (2 * from_one - m * total)
        tl.store(grad_weight + at, one / (s * s), mask=inside)
        tl.store(grad_weight + at + channels, two / (s * s * s) - count / s, mask=inside)
        to_mu -= tl.sum(2 * w_sigma * one / (s * s * s) + w_mu * total / (s * s), axis=0)
        to_sigma += tl.sum((w_sigma * (count - 3 * two / (s * s)) - 2 * w_mu * one / s) / (s * s), axis=0)
    tl.store(grad_mu + place, to_mu, mask=channel < channels)
    tl.store(grad_sigma + place, to_sigma, mask=channel < channels)
