"""The gradient of the encoding.

Programs of a field compute what each of its entries adds to the gradient of its member, and store it; the entries of each
member are then summed in a fixed order. Atomic additions would need no memory for it, but give other bits in every run.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from torch_gic.encoding.gaussian_encode import Gradients, reference_backward
from torch_gic.kernels.triton import gpu
from torch_gic.kernels.triton.encode_tiles import (
    Prepared,
    check,
    moment_gradients,
    prepare,
    responsibilities,
    supported,
    through_distances,
    tiles,
)

BUFFER = 2**28  # bytes for what entries add to their members; more entries than fit into it go in turns
PARTS = 64  # of the nodes: each sums what they add to means and deviations by itself


def gaussian_encode_backward(
    grad: Tensor,
    grad_mass: Tensor,
    encoding: Tensor,
    mass: Tensor,
    x: Tensor,
    mu: Tensor,
    sigma: Tensor,
    log_pi: Tensor,
    weight: Tensor,
    member: Tensor,
    rowptr: Tensor,
    x_needs_grad: bool = True,
    weight_needs_grad: bool = True,
) -> Gradients:
    """See :func:`torch_gic.encoding.gaussian_encode`."""
    check(x, mu, sigma, log_pi, weight, member, rowptr)
    shape = [rowptr.numel() - 1, *mu.shape[:2], 2]
    wide = [*shape, mu.size(2)]
    gpu.check({"grad": (grad, wide, x.dtype), "encoding": (encoding, wide, x.dtype)}, x.device)
    gpu.check({"grad_mass": (grad_mass, shape, x.dtype), "mass": (mass, shape, x.dtype)}, x.device)
    if not supported(mu):
        inputs = grad, grad_mass, encoding, mass, x, mu, sigma, log_pi, weight, member, rowptr
        return reference_backward(*inputs, x_needs_grad, weight_needs_grad)
    grad, fields = grad.contiguous(), (weight.contiguous(), member.contiguous(), rowptr.contiguous())
    prepared = prepare(x, mu, sigma, log_pi)
    grad_mu, grad_sigma = _mixture_gradients(grad, encoding.contiguous(), mass.contiguous(), prepared.precision)
    grad_x, grad_distance, grad_log_pi, grad_weight = _member_gradients(
        grad, grad_mass.contiguous(), prepared, fields, x_needs_grad, weight_needs_grad
    )
    if mu.size(1) > 1:
        grad_x, grad_mu, grad_sigma = through_distances(prepared, grad_distance, grad_x, grad_mu, grad_sigma)
        grad_sigma = grad_sigma - grad_log_pi.unsqueeze(2) * prepared.precision  # by way of the prior
    return grad_x, grad_mu, grad_sigma, grad_log_pi, grad_weight


def _mixture_gradients(grad: Tensor, encoding: Tensor, mass: Tensor, precision: Tensor) -> tuple[Tensor, Tensor]:
    """Of means and deviations, as far as the encoding is a function of them for given responsibilities."""
    num_nodes, columns, channels = grad.size(0), precision.numel(), precision.size(2)
    nodes, width = 16, 128 if grad.element_size() == 4 else 64
    parts = min(PARTS, triton.cdiv(num_nodes, nodes))
    out = grad.new_empty(parts, 2, columns)
    gpu.launch(
        _mixture, (parts, triton.cdiv(columns, width)), grad, encoding, mass, precision, out, num_nodes, parts,
        columns=columns, channels=channels, NODES=nodes, COLUMNS=width,
    )  # fmt: skip
    to_mu, to_sigma = out.sum(dim=0).view(2, *precision.shape).unbind(0)
    return -to_mu * precision, -to_sigma * precision


def _member_gradients(
    grad: Tensor,
    grad_mass: Tensor,
    prepared: Prepared,
    fields: tuple[Tensor, Tensor, Tensor],
    x_needs_grad: bool,
    weight_needs_grad: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Of features, distances, log weights and field weights; those that nobody needs are empty."""
    (weight, member, _), x = fields, prepared.x
    num_nodes, scales, components, _, channels = grad.shape
    num_members, num_entries = x.size(0), member.numel()
    grad_x = x.new_zeros(x.shape if x_needs_grad else 0)
    grad_distance = x.new_zeros(num_members, scales * components if components > 1 else 0)
    grad_prior = x.new_zeros(scales, components)
    grad_weight = x.new_empty(weight.shape if weight_needs_grad else 0)
    width, distances = channels if x_needs_grad else 0, grad_distance.size(1)
    sizes = tiles(scales, components, channels, x.dtype)
    # Half the rows, and for several components no loads ahead: more would spill (python -m benchmark.gpu.compile).
    fewer = sizes | {"SCALES": max(sizes["SCALES"] // 2, 16 // sizes["COMPONENTS"], 1)}
    fewer["num_stages"] = 1 if components > 1 else gpu.OPTIONS["num_stages"]
    at_once = max(1, BUFFER // (max(width + distances, 1) * x.element_size()))
    for begin in range(0, num_entries, at_once):
        end = min(begin + at_once, num_entries)
        operands = grad, *prepared, *fields, begin, end
        to_x, to_distance = x.new_empty(end - begin, width), x.new_empty(end - begin, distances)
        to_prior = x.new_empty(num_nodes, distances)
        if distances > 0 or weight_needs_grad:
            grid = (num_nodes, triton.cdiv(scales, fewer["SCALES"]))
            results = grad_mass, to_distance, to_prior, grad_weight
            gpu.launch(_logit_gradients, grid, *operands, *results, WEIGHT_NEEDS_GRAD=weight_needs_grad, **fewer)
        if width > 0:
            gpu.launch(_feature_gradients, (num_nodes, triton.cdiv(channels, sizes["CHANNELS"])), *operands, to_x, **sizes)
        if width + distances == 0:
            continue
        by_member = gpu.segments(member.narrow(0, begin, end - begin), num_members)
        if width > 0:
            gpu.segment_sum(to_x, *by_member, grad_x, add=begin > 0)
        if distances > 0:
            gpu.segment_sum(to_distance, *by_member, grad_distance, add=begin > 0)
            grad_prior += to_prior.sum(dim=0).view(scales, components)
    return grad_x, grad_distance, grad_prior, grad_weight


@triton.jit
def _mixture(
    grad, encoding, mass, precision, out, num_nodes, parts,
    columns: tl.constexpr, channels: tl.constexpr, NODES: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """``sum S1 g1 / sigma + 2 y1 g2`` and ``sum 2 y1 g1 + (3 y2 + 2 S0 / sigma) g2`` over a part of the nodes: g are the
    gradients, y the encoding, S1 and S0 the masses."""
    part = tl.program_id(0)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    row, channel = column // channels, column % channels
    inverse = tl.load(precision + column, mask=column < columns, other=0)
    to_mu = tl.zeros([NODES, COLUMNS], inverse.dtype)
    to_sigma = tl.zeros([NODES, COLUMNS], inverse.dtype)
    for first in range(part * NODES, num_nodes, parts * NODES):
        node = (first + tl.arange(0, NODES)).to(tl.int64)
        inside = (node < num_nodes)[:, None] & (column < columns)[None, :]
        at_mass = node[:, None] * (2 * (columns // channels)) + 2 * row[None, :]
        at = node[:, None] * (2 * columns) + (2 * row * channels + channel)[None, :]
        s1, s0 = tl.load(mass + at_mass, mask=inside, other=0), tl.load(mass + at_mass + 1, mask=inside, other=0)
        g1, g2 = tl.load(grad + at, mask=inside, other=0), tl.load(grad + at + channels, mask=inside, other=0)
        y1, y2 = tl.load(encoding + at, mask=inside, other=0), tl.load(encoding + at + channels, mask=inside, other=0)
        to_mu += s1 * inverse[None, :] * g1 + 2 * y1 * g2
        to_sigma += 2 * y1 * g1 + (3 * y2 + 2 * s0 * inverse[None, :]) * g2
    to = out + part * (2 * columns) + column
    tl.store(to, tl.sum(to_mu, axis=0), mask=column < columns)
    tl.store(to + columns, tl.sum(to_sigma, axis=0), mask=column < columns)


@triton.jit
def _logit_gradients(
    grad, x, mu, precision, distance, prior, weight, member, rowptr, first_entry, last_entry,
    grad_mass, to_distance, to_prior, grad_weight,
    WEIGHT_NEEDS_GRAD: tl.constexpr,
    scales: tl.constexpr, components: tl.constexpr, channels: tl.constexpr, T: tl.constexpr, PRECISION: tl.constexpr,
    NEGLIGIBLE: tl.constexpr, ENTRIES: tl.constexpr, SCALES: tl.constexpr, COMPONENTS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """To the responsibilities of a few scales, and through the softmax to distances, prior and weights."""
    node, first_scale = tl.program_id(0).to(tl.int64), tl.program_id(1) * SCALES
    begin = tl.maximum(tl.load(rowptr + node), first_entry)
    end = tl.minimum(tl.load(rowptr + node + 1), last_entry)
    k, c = first_scale + tl.arange(0, SCALES), tl.arange(0, COMPONENTS)
    inside = (k < scales)[:, None] & (c < components)[None, :]
    place = (node * scales + k[:, None]) * components + c[None, :]
    to_total = tl.reshape(tl.load(grad_mass + 2 * place, mask=inside, other=0), [SCALES * COMPONENTS])
    to_count = tl.reshape(tl.load(grad_mass + 2 * place + 1, mask=inside, other=0), [SCALES * COMPONENTS])
    for first_channel in range(0, channels, CHANNELS):
        channel = first_channel + tl.arange(0, CHANNELS)
        _, _, by_total, by_count = moment_gradients(
            grad, mu, precision, node, first_scale, channel, scales, components, channels, SCALES, COMPONENTS
        )
        to_total += tl.sum(by_total, axis=1)
        to_count += tl.sum(by_count, axis=1)
    from_total = tl.reshape(to_total, [SCALES, COMPONENTS])[None, :, :]
    from_count = tl.reshape(to_count, [SCALES, COMPONENTS])[None, :, :]
    sum_of_logits = tl.zeros([SCALES, COMPONENTS], T)
    for first in range(begin, end, ENTRIES):
        entry = first + tl.arange(0, ENTRIES)
        present = entry < end
        j = tl.load(member + entry, mask=present, other=0)
        product = tl.zeros([ENTRIES, SCALES * COMPONENTS], T)
        for first_channel in range(0, channels, CHANNELS):
            channel = first_channel + tl.arange(0, CHANNELS)
            known = present[:, None] & (channel < channels)[None, :]
            value = tl.load(x + j[:, None] * channels + channel[None, :], mask=known, other=0)
            one, two, _, _ = moment_gradients(
                grad, mu, precision, node, first_scale, channel, scales, components, channels, SCALES, COMPONENTS
            )
            product = tl.dot(value, tl.trans(one), product, input_precision=PRECISION, out_dtype=T)
            product = tl.dot(value * value, tl.trans(two), product, input_precision=PRECISION, out_dtype=T)
        a, m, q = responsibilities(
            distance, prior, weight, entry, j, present, first_scale,
            scales, components, T, NEGLIGIBLE, ENTRIES, SCALES, COMPONENTS,
        )  # fmt: skip
        to_aq = tl.reshape(product, [ENTRIES, SCALES, COMPONENTS]) + from_total
        to_weight = q * to_aq
        if components > 1:
            to_q = a * to_aq + from_count
            to_logit = q * (to_q - tl.sum(q * to_q, axis=2)[:, :, None])
            sum_of_logits += tl.sum(to_logit, axis=0)
            to_weight -= m / 2 * to_logit
            at = ((entry - first_entry)[:, None, None] * scales + k[None, :, None]) * components + c[None, None, :]
            tl.store(to_distance + at, -a / 2 * to_logit, mask=present[:, None, None] & inside[None, :, :])
        if WEIGHT_NEEDS_GRAD:
            known = present[:, None] & (k < scales)[None, :]
            tl.store(grad_weight + entry[:, None] * scales + k[None, :], tl.sum(to_weight, axis=2), mask=known)
    if components > 1:
        tl.store(to_prior + place, sum_of_logits, mask=inside)


@triton.jit
def _feature_gradients(
    grad, x, mu, precision, distance, prior, weight, member, rowptr, first_entry, last_entry, to_x,
    scales: tl.constexpr, components: tl.constexpr, channels: tl.constexpr, T: tl.constexpr, PRECISION: tl.constexpr,
    NEGLIGIBLE: tl.constexpr, ENTRIES: tl.constexpr, SCALES: tl.constexpr, COMPONENTS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """To a few channels of the features, for given responsibilities."""
    node, channel = tl.program_id(0).to(tl.int64), tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    begin = tl.maximum(tl.load(rowptr + node), first_entry)
    end = tl.minimum(tl.load(rowptr + node + 1), last_entry)
    for first in range(begin, end, ENTRIES):
        entry = first + tl.arange(0, ENTRIES)
        present = entry < end
        j = tl.load(member + entry, mask=present, other=0)
        known = present[:, None] & (channel < channels)[None, :]
        to_value = tl.zeros([ENTRIES, CHANNELS], T)
        to_square = tl.zeros([ENTRIES, CHANNELS], T)
        for first_scale in range(0, scales, SCALES):
            a, _, q = responsibilities(
                distance, prior, weight, entry, j, present, first_scale,
                scales, components, T, NEGLIGIBLE, ENTRIES, SCALES, COMPONENTS,
            )  # fmt: skip
            p = tl.reshape(a * q, [ENTRIES, SCALES * COMPONENTS])
            one, two, _, _ = moment_gradients(
                grad, mu, precision, node, first_scale, channel, scales, components, channels, SCALES, COMPONENTS
            )
            to_value = tl.dot(p, one, to_value, input_precision=PRECISION, out_dtype=T)
            to_square = tl.dot(p, two, to_square, input_precision=PRECISION, out_dtype=T)
        value = tl.load(x + j[:, None] * channels + channel[None, :], mask=known, other=0)
        at = (entry - first_entry)[:, None] * channels + channel[None, :]
        tl.store(to_x + at, to_value + 2 * value * to_square, mask=known)
