"""The encoding of receptive fields, forward: one program for a field, a few scales and a few channels."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from torch_gic.encoding.gaussian_encode import reference
from torch_gic.kernels.triton import gpu
from torch_gic.kernels.triton.encode_tiles import check, load_mixture, prepare, responsibilities, supported, tiles


def gaussian_encode(
    x: Tensor, mu: Tensor, sigma: Tensor, log_pi: Tensor, weight: Tensor, member: Tensor, rowptr: Tensor
) -> tuple[Tensor, Tensor]:
    """See :func:`torch_gic.encoding.gaussian_encode`."""
    check(x, mu, sigma, log_pi, weight, member, rowptr)
    if not supported(mu):
        return reference(x, mu, sigma, log_pi, weight, member, rowptr)
    (scales, components, channels), num_nodes = mu.shape, rowptr.numel() - 1
    encoding = x.new_empty(num_nodes, scales, components, 2, channels)
    mass = x.new_empty(num_nodes, scales, components, 2)
    sizes = tiles(scales, components, channels, x.dtype)
    grid = (num_nodes, triton.cdiv(scales, sizes["SCALES"]), max(1, triton.cdiv(channels, sizes["CHANNELS"])))
    fields = weight.contiguous(), member.contiguous(), rowptr.contiguous()
    gpu.launch(_encode, grid, *prepare(x, mu, sigma, log_pi), *fields, encoding, mass, **sizes)
    return encoding, mass


@triton.jit
def _encode(
    x, mu, precision, distance, prior, weight, member, rowptr, encoding, mass,
    scales: tl.constexpr, components: tl.constexpr, channels: tl.constexpr, T: tl.constexpr, PRECISION: tl.constexpr,
    NEGLIGIBLE: tl.constexpr, ENTRIES: tl.constexpr, SCALES: tl.constexpr, COMPONENTS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """The moments ``X1 = sum aQ x`` and ``X2 = sum aQ x^2`` and the masses ``S1 = sum aQ`` and ``S0 = sum Q``, and of them
    ``(X1 - mu S1) / sigma^2`` and ``(X2 - 2 mu X1 + mu^2 S1) / sigma^3 - S0 / sigma``."""
    node = tl.program_id(0).to(tl.int64)  # times the size of an encoding: soon beyond 32 bits
    first_scale = tl.program_id(1) * SCALES
    channel = tl.program_id(2) * CHANNELS + tl.arange(0, CHANNELS)
    begin, end = tl.load(rowptr + node), tl.load(rowptr + node + 1)
    one = tl.zeros([SCALES * COMPONENTS, CHANNELS], T)
    two = tl.zeros([SCALES * COMPONENTS, CHANNELS], T)
    total = tl.zeros([SCALES, COMPONENTS], T)
    count = tl.zeros([SCALES, COMPONENTS], T)
    for first in range(begin, end, ENTRIES):
        entry = first + tl.arange(0, ENTRIES)
        present = entry < end
        j = tl.load(member + entry, mask=present, other=0)
        a, _, q = responsibilities(
            distance, prior, weight, entry, j, present, first_scale,
            scales, components, T, NEGLIGIBLE, ENTRIES, SCALES, COMPONENTS,
        )  # fmt: skip
        aq = a * q
        total += tl.sum(aq, axis=0)
        count += tl.sum(q, axis=0)
        inside = present[:, None] & (channel < channels)[None, :]
        value = tl.load(x + j[:, None] * channels + channel[None, :], mask=inside, other=0)
        p = tl.trans(tl.reshape(aq, [ENTRIES, SCALES * COMPONENTS]))
        one = tl.dot(p, value, one, input_precision=PRECISION, out_dtype=T)
        two = tl.dot(p, value * value, two, input_precision=PRECISION, out_dtype=T)

    row = tl.arange(0, SCALES * COMPONENTS)
    k, c = first_scale + row // COMPONENTS, row % COMPONENTS
    mean, inverse = load_mixture(mu, precision, k, c, channel, scales, components, channels)
    s1 = tl.reshape(total, [SCALES * COMPONENTS])[:, None]
    s0 = tl.reshape(count, [SCALES * COMPONENTS])[:, None]
    inside = ((k < scales) & (c < components))[:, None] & (channel < channels)[None, :]
    to = encoding + (((node * scales + k) * components + c) * 2 * channels)[:, None] + channel[None, :]
    tl.store(to, (one - mean * s1) * inverse * inverse, mask=inside)
    spread = two - mean * (2 * one - mean * s1)
    tl.store(to + channels, (spread * inverse * inverse - s0) * inverse, mask=inside)
    if tl.program_id(2) == 0:
        scale, component = first_scale + tl.arange(0, SCALES)[:, None], tl.arange(0, COMPONENTS)[None, :]
        exists = (scale < scales) & (component < components)
        to_mass = mass + ((node * scales + scale) * components + component) * 2
        tl.store(to_mass, total, mask=exists)
        tl.store(to_mass + 1, count, mask=exists)
