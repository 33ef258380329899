"""The sums over receptive fields, forward: one program for a field, a few scales and a few channels."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from torch_gic.ops.encode_moments import reference
from torch_gic.triton import gpu
from torch_gic.triton.encode_tiles import check, responsibilities, supported, tiles


def encode_moments(
    x: Tensor, distance: Tensor, prior: Tensor, weight: Tensor, member: Tensor, vertex: Tensor, num_nodes: int
) -> tuple[Tensor, Tensor]:
    """See :func:`torch_gic.ops.encode_moments`."""
    check(x, distance, prior, weight, member, vertex, num_nodes)
    if not supported(prior):
        return reference(x, distance, prior, weight, member, vertex, num_nodes)
    (scales, components), channels = prior.shape, x.size(1)
    moments = x.new_empty(num_nodes, scales, components, 2, channels)
    mass = x.new_empty(num_nodes, scales, components, 2)
    order, ptr = gpu.segments(vertex, num_nodes)
    sizes = tiles(scales, components, channels, x.dtype)
    grid = (num_nodes, triton.cdiv(scales, sizes["SCALES"]), max(1, triton.cdiv(channels, sizes["CHANNELS"])))
    operands = [value.contiguous() for value in (x, distance, prior, weight, member)]
    gpu.launch(
        _moments, grid, *operands, order, ptr, moments, mass,
        scales=scales, components=components, channels=channels, ENTRIES=16, **sizes,
    )  # fmt: skip
    return moments, mass


@triton.jit
def _moments(
    x, distance, prior, weight, member, order, ptr, moments, mass,
    scales: tl.constexpr, components: tl.constexpr, channels: tl.constexpr, T: tl.constexpr,
    PRECISION: tl.constexpr, ENTRIES: tl.constexpr, SCALES: tl.constexpr, COMPONENTS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    vertex = tl.program_id(0).to(tl.int64)  # times the size of a field's moments: soon beyond 32 bits
    first_scale = tl.program_id(1) * SCALES
    channel = tl.program_id(2) * CHANNELS + tl.arange(0, CHANNELS)
    begin, end = tl.load(ptr + vertex), tl.load(ptr + vertex + 1)
    one = tl.zeros([SCALES * COMPONENTS, CHANNELS], T)
    two = tl.zeros([SCALES * COMPONENTS, CHANNELS], T)
    total = tl.zeros([SCALES, COMPONENTS], T)
    count = tl.zeros([SCALES, COMPONENTS], T)
    for first in range(begin, end, ENTRIES):
        slot = first + tl.arange(0, ENTRIES)
        present = slot < end
        entry = tl.load(order + slot, mask=present, other=0)
        j = tl.load(member + entry, mask=present, other=0)
        a, _, q = responsibilities(
            distance, prior, weight, entry, j, present, first_scale, scales, components, T, SCALES, COMPONENTS
        )
        aq = a * q
        total += tl.sum(aq, axis=0)
        count += tl.sum(q, axis=0)
        inside = present[:, None] & (channel < channels)[None, :]
        value = tl.load(x + j[:, None] * channels + channel[None, :], mask=inside, other=0).to(T)
        p = tl.trans(tl.reshape(aq, [ENTRIES, SCALES * COMPONENTS]))
        one = tl.dot(p, value, one, input_precision=PRECISION, out_dtype=T)
        two = tl.dot(p, value * value, two, input_precision=PRECISION, out_dtype=T)

    row = tl.arange(0, SCALES * COMPONENTS)
    k, c = first_scale + row // COMPONENTS, row % COMPONENTS
    inside = ((k < scales) & (c < components))[:, None] & (channel < channels)[None, :]
    to = moments + (((vertex * scales + k) * components + c) * 2 * channels)[:, None] + channel[None, :]
    tl.store(to, one, mask=inside)
    tl.store(to + channels, two, mask=inside)
    if tl.program_id(2) == 0:
        scale, component = first_scale + tl.arange(0, SCALES)[:, None], tl.arange(0, COMPONENTS)[None, :]
        exists = (scale < scales) & (component < components)
        to_mass = mass + ((vertex * scales + scale) * components + component) * 2
        tl.store(to_mass, total, mask=exists)
        tl.store(to_mass + 1, count, mask=exists)
