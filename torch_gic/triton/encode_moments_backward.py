"""The gradient of the sums over receptive fields.

One program for a field computes what each of its entries adds to the gradient of its member, and stores it; the entries of
each member are then summed in a fixed order. Atomic additions would need no memory for it, but give other bits in every run.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from torch_gic.ops.encode_moments import reference_backward
from torch_gic.triton import gpu
from torch_gic.triton.encode_tiles import check, responsibilities, supported, tiles

BUFFER = 2**28  # bytes for what entries add to their members; more entries than fit into it go in turns


def encode_moments_backward(
    grad_moments: Tensor,
    grad_mass: Tensor,
    x: Tensor,
    distance: Tensor,
    prior: Tensor,
    weight: Tensor,
    member: Tensor,
    vertex: Tensor,
    x_needs_grad: bool = True,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """See :func:`torch_gic.ops.encode_moments`."""
    num_nodes, (num_members, channels), (scales, components) = grad_moments.size(0), x.shape, prior.shape
    check(x, distance, prior, weight, member, vertex, num_nodes)
    if not supported(prior):
        return reference_backward(grad_moments, grad_mass, x, distance, prior, weight, member, vertex, x_needs_grad)
    kind, num_entries = gpu.sum_type(x.dtype), vertex.numel()
    order, ptr = gpu.segments(vertex, num_nodes)
    # Not by zeros_like, which keeps the strides of a transposed tensor: kernels write rows.
    grad_distance, grad_prior = (value.new_zeros(value.shape, dtype=kind) for value in (distance, prior))
    grad_x = x.new_zeros(x.shape if x_needs_grad else 0, dtype=kind)
    grad_weight = weight.new_empty(weight.shape)
    operands = [value.contiguous() for value in (grad_moments, grad_mass, x, distance, prior, weight, member)]
    sizes = tiles(scales, components, channels, x.dtype)

    width = channels if x_needs_grad else 0
    at_once = max(1, BUFFER // ((width + scales * components) * kind.itemsize))
    for begin in range(0, num_entries, at_once):
        end = min(begin + at_once, num_entries)
        to_x = x.new_empty(end - begin, width, dtype=kind)
        to_distance = x.new_empty(end - begin, scales * components, dtype=kind)
        to_prior = x.new_empty(num_nodes, scales, components, dtype=kind)
        gpu.launch(
            _entry_gradients, (num_nodes,), *operands, order, ptr, begin, end, to_x, to_distance, to_prior, grad_weight,
            scales=scales, components=components, channels=channels, X_NEEDS_GRAD=x_needs_grad, ENTRIES=16, **sizes,
        )  # fmt: skip
        grad_prior += to_prior.sum(dim=0)
        by_member = gpu.segments(member.index_select(0, order.narrow(0, begin, end - begin)), num_members)
        if x_needs_grad:
            gpu.segment_sum(to_x, *by_member, grad_x, add=begin > 0)
        gpu.segment_sum(to_distance, *by_member, grad_distance.view(num_members, -1), add=begin > 0)
    return grad_x.to(x.dtype), grad_distance.to(x.dtype), grad_prior.to(x.dtype), grad_weight


@triton.jit
def _entry_gradients(
    grad_moments, grad_mass, x, distance, prior, weight, member, order, ptr, first_entry, last_entry,
    to_x, to_distance, to_prior, grad_weight,
    scales: tl.constexpr, components: tl.constexpr, channels: tl.constexpr, X_NEEDS_GRAD: tl.constexpr, T: tl.constexpr,
    PRECISION: tl.constexpr, ENTRIES: tl.constexpr, SCALES: tl.constexpr, COMPONENTS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    vertex = tl.program_id(0).to(tl.int64)
    begin = tl.maximum(tl.load(ptr + vertex), first_entry)
    end = tl.minimum(tl.load(ptr + vertex + 1), last_entry)
    row = tl.arange(0, SCALES * COMPONENTS)
    c = tl.arange(0, COMPONENTS)

    # To responsibilities, and through the softmax to distances, prior and weights.
    for first_scale in range(0, scales, SCALES):
        k = first_scale + tl.arange(0, SCALES)
        inside = (k < scales)[:, None] & (c < components)[None, :]
        place = (vertex * scales + k[:, None]) * components + c[None, :]
        from_total = tl.load(grad_mass + 2 * place, mask=inside, other=0).to(T)[None, :, :]
        from_count = tl.load(grad_mass + 2 * place + 1, mask=inside, other=0).to(T)[None, :, :]
        sum_of_logits = tl.zeros([SCALES, COMPONENTS], T)
        for first in range(begin, end, ENTRIES):
            slot = first + tl.arange(0, ENTRIES)
            present = slot < end
            entry = tl.load(order + slot, mask=present, other=0)
            j = tl.load(member + entry, mask=present, other=0)
            a, m, q = responsibilities(
                distance, prior, weight, entry, j, present, first_scale, scales, components, T, SCALES, COMPONENTS
            )
            product = tl.zeros([ENTRIES, SCALES * COMPONENTS], T)
            for first_channel in range(0, channels, CHANNELS):
                channel = first_channel + tl.arange(0, CHANNELS)
                known = present[:, None] & (channel < channels)[None, :]
                value = tl.load(x + j[:, None] * channels + channel[None, :], mask=known, other=0).to(T)
                one, two = _field_gradient(
                    grad_moments, vertex, first_scale, row, channel, scales, components, channels, T, COMPONENTS
                )
                product = tl.dot(value, tl.trans(one), product, input_precision=PRECISION, out_dtype=T)
                product = tl.dot(value * value, tl.trans(two), product, input_precision=PRECISION, out_dtype=T)
            to_aq = tl.reshape(product, [ENTRIES, SCALES, COMPONENTS]) + from_total
            to_q = a * to_aq + from_count
            to_logit = q * (to_q - tl.sum(q * to_q, axis=2)[:, :, None])
            sum_of_logits += tl.sum(to_logit, axis=0)
            at = ((slot - first_entry)[:, None, None] * scales + k[None, :, None]) * components + c[None, None, :]
            tl.store(to_distance + at, -a / 2 * to_logit, mask=present[:, None, None] & inside[None, :, :])
            to_weight = tl.sum(q * to_aq - m / 2 * to_logit, axis=2)
            known = present[:, None] & (k < scales)[None, :]
            tl.store(grad_weight + entry[:, None] * scales + k[None, :], to_weight, mask=known)
        tl.store(to_prior + place, sum_of_logits, mask=inside)

    if X_NEEDS_GRAD:
        for first in range(begin, end, ENTRIES):
            slot = first + tl.arange(0, ENTRIES)
            present = slot < end
            entry = tl.load(order + slot, mask=present, other=0)
            j = tl.load(member + entry, mask=present, other=0)
            for first_channel in range(0, channels, CHANNELS):
                channel = first_channel + tl.arange(0, CHANNELS)
                known = present[:, None] & (channel < channels)[None, :]
                value = tl.load(x + j[:, None] * channels + channel[None, :], mask=known, other=0).to(T)
                to_value = tl.zeros([ENTRIES, CHANNELS], T)
                to_square = tl.zeros([ENTRIES, CHANNELS], T)
                for first_scale in range(0, scales, SCALES):
                    a, _, q = responsibilities(
                        distance, prior, weight, entry, j, present, first_scale, scales, components, T, SCALES, COMPONENTS
                    )
                    p = tl.reshape(a * q, [ENTRIES, SCALES * COMPONENTS])
                    one, two = _field_gradient(
                        grad_moments, vertex, first_scale, row, channel, scales, components, channels, T, COMPONENTS
                    )
                    to_value = tl.dot(p, one, to_value, input_precision=PRECISION, out_dtype=T)
                    to_square = tl.dot(p, two, to_square, input_precision=PRECISION, out_dtype=T)
                at = (slot - first_entry)[:, None] * channels + channel[None, :]
                tl.store(to_x + at, to_value + 2 * value * to_square, mask=known)


@triton.jit
def _field_gradient(
    grad_moments, vertex, first_scale, row, channel,
    scales: tl.constexpr, components: tl.constexpr, channels: tl.constexpr, T: tl.constexpr, COMPONENTS: tl.constexpr,
):  # fmt: skip
    """The gradient of the two moments of a field, (scale, component) by channel."""
    k, c = first_scale + row // COMPONENTS, row % COMPONENTS
    inside = ((k < scales) & (c < components))[:, None] & (channel < channels)[None, :]
    at = grad_moments + (((vertex * scales + k) * components + c) * 2 * channels)[:, None] + channel[None, :]
    return tl.load(at, mask=inside, other=0).to(T), tl.load(at + channels, mask=inside, other=0).to(T)
