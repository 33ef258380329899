"""Sizes that depend on values, in a form that does not break a compiled graph."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._library.fake_impl import allocate_size

from torch_gic._checks import count_graphs
from torch_gic.kernels.library import OPS, register_reference
from torch_gic.kernels.operands import check_tensor

OPS.define("graph_sizes(Tensor batch) -> Tensor")
OPS.define("true_places(Tensor mask) -> Tensor")


def new_size(least: int = 0) -> Any:
    """A size that depends on values, for a fake kernel.

    PyTorch's own ``new_dynamic_size`` breaks a compiled graph there, unless a setting of the process says otherwise. What
    follows here has no use for the size: there is nothing to break for.
    """
    context = torch.library.get_ctx()
    env = context._shape_env
    return context.new_dynamic_size(min=least) if env is None else allocate_size(env, least)


def number_of_graphs(batch: Tensor) -> int:
    """One more than the highest number of a graph. In a traced model this is a symbol, and at least one."""
    if torch.compiler.is_compiling():
        return torch.ops.torch_gic.graph_sizes(batch.long()).size(0)
    return int(batch.max()) + 1 if batch.numel() > 0 else 0


def true_places(mask: Tensor) -> Tensor:
    """Where a mask is true. Indexing by the mask itself would break a compiled graph."""
    return torch.ops.torch_gic.true_places(mask) if torch.compiler.is_compiling() else mask.nonzero().view(-1)


@register_reference("graph_sizes")
def reference(batch: Tensor) -> Tensor:
    """The number of nodes of each graph: of one at least."""
    check_tensor(batch, "batch", (None,), torch.int64)
    count_graphs(batch, batch.new_empty(2, 0))  # looks at values
    return torch.bincount(batch, minlength=1)


@register_reference("true_places")
def reference_places(mask: Tensor) -> Tensor:
    check_tensor(mask, "mask", (None,), torch.bool)
    return mask.nonzero().view(-1)


@torch.library.register_fake("torch_gic::graph_sizes", lib=OPS)
def _(batch: Tensor) -> Tensor:
    return batch.new_empty(new_size(1))


@torch.library.register_fake("torch_gic::true_places", lib=OPS)
def _(mask: Tensor) -> Tensor:
    return mask.new_empty(new_size(), dtype=torch.int64)
