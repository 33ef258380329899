"""The mean features of a field."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_gic.fields.fields import Fields
from torch_gic.kernels.library import OPS, is_transformed, register_reference
from torch_gic.kernels.operands import check_range, check_tensor, row_of_entries

OPS.define("field_mean(Tensor x, Tensor weight, Tensor member, Tensor rowptr) -> (Tensor, Tensor)")
OPS.define(
    "field_mean_backward(Tensor grad, Tensor mean, Tensor mass, Tensor x, Tensor weight, Tensor member, Tensor rowptr,"
    " bool x_needs_grad=True, bool weight_needs_grad=True) -> (Tensor, Tensor)"
)


def field_mean(x: Tensor, fields: Fields) -> Tensor:
    r"""The mean of the features in the field of each node, weighted as in the first scale

    .. math::
        \bar{\mathbf{x}}_i = \frac{\sum_j a_{ij1} \, \mathbf{x}_j}{\sum_j a_{ij1}},

    zero where the field is empty. The kernel forms nothing of size :math:`E \cdot d`.

    Shapes:
        - **input:** features :math:`(M, d)`, fields of :math:`N` nodes
        - **output:** :math:`(N, d)`, in float32 for half precision
    """
    x = x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
    mean = reference if is_transformed() else torch.ops.torch_gic.field_mean
    return mean(x, fields.weight[:, 0].to(x.dtype), fields.index[0], fields.rowptr)[0]


@register_reference("field_mean")
def reference(x: Tensor, weight: Tensor, member: Tensor, rowptr: Tensor) -> tuple[Tensor, Tensor]:
    """With the mean, the mass ``sum a`` of each field."""
    _check(x, weight, member, rowptr)
    node, present = row_of_entries(rowptr, member.numel()), weight > 0
    terms = torch.where(present.unsqueeze(1), weight.unsqueeze(1) * x.index_select(0, member), 0)
    total = x.new_zeros(rowptr.numel() - 1, x.size(1)).index_add(0, node, terms)
    mass = x.new_zeros(rowptr.numel() - 1).index_add(0, node, torch.where(present, weight, 0))
    return total / torch.where(mass > 0, mass, 1).unsqueeze(1), mass


@register_reference("field_mean_backward")
def reference_backward(
    grad: Tensor,
    mean: Tensor,
    mass: Tensor,
    x: Tensor,
    weight: Tensor,
    member: Tensor,
    rowptr: Tensor,
    x_needs_grad: bool = True,
    weight_needs_grad: bool = True,
) -> tuple[Tensor, Tensor]:
    """A gradient that is not needed is an empty tensor."""
    _check(x, weight, member, rowptr)
    for value, name in ((grad, "grad"), (mean, "mean")):
        check_tensor(value, name, (rowptr.numel() - 1, x.size(1)), x.dtype)
    check_tensor(mass, "mass", (rowptr.numel() - 1,), x.dtype)
    node, present = row_of_entries(rowptr, member.numel()), weight > 0
    grad = (grad / torch.where(mass > 0, mass, 1).unsqueeze(1)).index_select(0, node)
    to_x, to_weight = x.new_empty(0), x.new_empty(0)
    if x_needs_grad:
        to_x = torch.zeros_like(x).index_add(0, member, torch.where(present, weight, 0).unsqueeze(1) * grad)
    if weight_needs_grad:
        from_mean = x.index_select(0, member) - mean.index_select(0, node)
        to_weight = torch.where(present, (grad * from_mean).sum(dim=1), 0)
    return to_x, to_weight


def _check(x: Tensor, weight: Tensor, member: Tensor, rowptr: Tensor) -> None:
    check_tensor(x, "x", (None, None))
    check_tensor(member, "member", (None,), torch.int64)
    check_tensor(weight, "weight", (member.numel(),), x.dtype)
    check_range(member, "member", x.size(0))


@torch.library.register_fake("torch_gic::field_mean", lib=OPS)
def _(x: Tensor, weight: Tensor, member: Tensor, rowptr: Tensor) -> tuple[Tensor, Tensor]:
    return x.new_empty(rowptr.numel() - 1, x.size(1)), x.new_empty(rowptr.numel() - 1)


@torch.library.register_fake("torch_gic::field_mean_backward", lib=OPS)
def _(
    grad: Tensor,
    mean: Tensor,
    mass: Tensor,
    x: Tensor,
    weight: Tensor,
    member: Tensor,
    rowptr: Tensor,
    x_needs_grad: bool = True,
    weight_needs_grad: bool = True,
) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape if x_needs_grad else 0), x.new_empty(weight.shape if weight_needs_grad else 0)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*output, *inputs)
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, grad: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
    if grad is None:
        return (None,) * 4
    mean, mass, *inputs = ctx.saved_tensors
    needed = ctx.needs_input_grad
    if torch.is_grad_enabled():  # for a second derivative, PyTorch differentiates the reference
        wanted = [value for value, needs in zip(inputs, needed, strict=True) if needs]
        found = iter(torch.autograd.grad(reference(*inputs)[0], wanted, grad, create_graph=True))
        return tuple(next(found) if needs else None for needs in needed)
    to_x, to_weight = torch.ops.torch_gic.field_mean_backward(grad, mean, mass, *inputs, needed[0], needed[1])
    return to_x if needed[0] else None, to_weight if needed[1] else None, None, None


torch.library.register_autograd("torch_gic::field_mean", _backward, setup_context=_setup_context, lib=OPS)
