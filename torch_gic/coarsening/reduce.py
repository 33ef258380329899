"""The features of a cluster."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_gic.coarsening.check import check_clusters
from torch_gic.kernels.library import OPS, is_transformed, register_reference
from torch_gic.kernels.operands import check_tensor

OPS.define("cluster_max(Tensor x, Tensor cluster, SymInt num_clusters) -> Tensor")
OPS.define("cluster_max_backward(Tensor grad, Tensor x, Tensor out, Tensor cluster) -> Tensor")


def cluster_max(x: Tensor, cluster: Tensor, num_clusters: int) -> Tensor:
    r"""The largest value of each channel among the nodes of each cluster, :math:`\mathbf{x}^{\prime}_c = \max_{i \in c}
    \mathbf{x}_i`. Nodes with equal largest values share the gradient.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F)`, clusters :math:`(|\mathcal{V}|)`
        - **output:** :math:`(|\mathcal{V}^{\prime}|, F)`, zero for a cluster without a node
    """
    if x.dtype in (torch.float32, torch.float64):
        return (reference if is_transformed() else torch.ops.torch_gic.cluster_max)(x, cluster, num_clusters)
    return reference(x, cluster, num_clusters)


@register_reference("cluster_max")
def reference(x: Tensor, cluster: Tensor, num_clusters: int) -> Tensor:
    check_tensor(x, "x", (None, None))
    check_clusters(cluster, x.size(0), num_clusters)
    index = cluster.unsqueeze(1).expand_as(x)
    return x.new_zeros(num_clusters, x.size(1)).scatter_reduce(0, index, x, "amax", include_self=False)


@register_reference("cluster_max_backward")
def reference_backward(grad: Tensor, x: Tensor, out: Tensor, cluster: Tensor) -> Tensor:
    check_tensor(x, "x", (None, None))
    for value, name in ((out, "out"), (grad, "grad")):
        check_tensor(value, name, (out.size(0), x.size(1)), x.dtype)
    check_clusters(cluster, x.size(0), out.size(0))
    largest = (x == out[cluster]).to(x.dtype)
    count = torch.zeros_like(out).index_add(0, cluster, largest)
    return largest * (grad / count.clamp(min=1))[cluster]


@torch.library.register_fake("torch_gic::cluster_max", lib=OPS)
def _(x: Tensor, cluster: Tensor, num_clusters: int) -> Tensor:
    return x.new_empty(num_clusters, x.size(1))


@torch.library.register_fake("torch_gic::cluster_max_backward", lib=OPS)
def _(grad: Tensor, x: Tensor, out: Tensor, cluster: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, cluster, _ = inputs
    ctx.save_for_backward(x, output, cluster)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
    x, out, cluster = ctx.saved_tensors
    # The reference is linear in the gradient, and PyTorch can differentiate it.
    operation = reference_backward if torch.is_grad_enabled() else torch.ops.torch_gic.cluster_max_backward
    return operation(grad, x, out, cluster), None, None


torch.library.register_autograd("torch_gic::cluster_max", _backward, setup_context=_setup_context, lib=OPS)
