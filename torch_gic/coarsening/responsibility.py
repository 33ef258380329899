"""How sure the mixture is of a cluster. By this, a gradient reaches the weights of the nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.utils import scatter, softmax

from torch_gic.coarsening.graph import UndirectedGraph
from torch_gic.coarsening.segments import total_in
from torch_gic.kernels.library import OPS, is_transformed, register_reference
from torch_gic.kernels.operands import check_numbers

OPERANDS = (
    "Tensor node_weight, Tensor rowptr, Tensor col, Tensor weight, Tensor ptr, Tensor offset, Tensor cluster, Tensor beta"
)
OPS.define(f"responsibility({OPERANDS}) -> Tensor")
OPS.define(f"responsibility_backward(Tensor grad, {OPERANDS}) -> Tensor")


def responsibility(
    graph: UndirectedGraph, node_weight: Tensor, ptr: Tensor, offset: Tensor, cluster: Tensor, beta: Tensor
) -> Tensor:
    r"""For each node :math:`i`, the responsibility of its cluster :math:`a`, in one more E-step with the kernel of the cut
    (:func:`~torch_gic.coarsening.soft.cut_affinity`). A node chooses between its own cluster and those of its
    neighbours, so time and memory are linear in the edges. In that kernel, the responsibilities are

    .. math::
        p_{ic} = \mathrm{softmax}_c \Bigl( \log |\mathcal{V}_c| + \frac{\beta}{s_c} \Bigl( \mathrm{links}(i, c)
        + w_i \frac{\mathrm{cut}_c}{2 s_c} - \lambda w_i + [c = a] (2 \lambda w_i - d_i) \Bigr) \Bigr),

        \lambda = \max_i d_i / w_i,

    where :math:`d_i` and :math:`\mathrm{links}(i, c)` leave out a self-loop of :math:`i`, except in :math:`\lambda`.

    Args:
        graph (UndirectedGraph): The graphs.
        node_weight (torch.Tensor): The weight :math:`w_i > 0` of each node, in which the result is differentiable.
        ptr (torch.Tensor): Where the nodes of each graph begin and end. They stand side by side.
        offset (torch.Tensor): Where the clusters of each graph begin, and end.
        cluster (torch.Tensor): The cluster of each node.
        beta (torch.Tensor): The precision :math:`\beta` of each graph.

    Shapes:
        - **output:** responsibilities :math:`p_{ia}` :math:`(|\mathcal{V}|)`
    """
    operation = reference if is_transformed() else torch.ops.torch_gic.responsibility
    return operation(node_weight, *graph, ptr, offset, cluster, beta)


class _Choices(NamedTuple):
    """What the references compute for each pair of a node and a cluster it may choose."""

    node: Tensor
    cluster: Tensor
    own: Tensor  # of each node, the pair with its own cluster
    is_own: Tensor
    beta: Tensor
    links: Tensor
    shift: Tensor
    cut: Tensor
    mass: Tensor
    p: Tensor


def _choices(
    node_weight: Tensor,
    rowptr: Tensor,
    col: Tensor,
    weight: Tensor,
    ptr: Tensor,
    offset: Tensor,
    cluster: Tensor,
    beta: Tensor,
) -> _Choices:
    check_numbers(node_weight, "node_weight", "positive and finite")
    num_nodes, num_clusters, w = cluster.numel(), int(offset[-1]), node_weight
    graph = UndirectedGraph(rowptr, col, weight)
    batch = torch.repeat_interleave(torch.arange(beta.numel(), device=ptr.device), ptr.diff(), output_size=num_nodes)
    shift = scatter(graph.degree / w.detach(), batch, dim_size=beta.numel(), reduce="max")[batch]
    row = graph.row
    between = row != col
    row, weight, to = row[between], weight[between], cluster[col[between]]
    degree = total_in(weight, row, num_nodes)
    cut = total_in(weight * (cluster[row] != to), cluster[row], num_clusters)
    mass = total_in(w, cluster, num_clusters)

    node = torch.arange(num_nodes, device=cluster.device)
    pair, position = torch.unique(torch.cat([node, row]) * num_clusters + torch.cat([cluster, to]), return_inverse=True)
    i, c = pair // max(num_clusters, 1), pair % max(num_clusters, 1)
    links = total_in(torch.cat([-degree, weight]), position, pair.numel())
    is_own = c == cluster[i]
    shift = torch.where(is_own, shift[i], -shift[i])
    cut, mass, beta = cut[c], mass[c], beta[batch[i]]
    log_count = torch.bincount(cluster, minlength=num_clusters).log().to(w.dtype)
    exponent = log_count[c] + beta / mass * (links + w[i] * (shift + cut / (2 * mass)))
    p = softmax(exponent, i, num_nodes=num_nodes)
    return _Choices(i, c, position[:num_nodes], is_own, beta, links, shift, cut, mass, p)


@register_reference("responsibility")
def reference(node_weight: Tensor, *others: Tensor) -> Tensor:
    found = _choices(node_weight, *others)
    return found.p[found.own]


@register_reference("responsibility_backward")
def reference_backward(grad: Tensor, node_weight: Tensor, *others: Tensor) -> Tensor:
    i, c, own, is_own, beta, links, shift, cut, mass, p = _choices(node_weight, *others)
    w, cluster = node_weight[i], c[own]
    to_exponent = grad[i] * p[own][i] * (is_own.to(p.dtype) - p) * beta / mass
    to_weight = total_in(to_exponent * (shift + cut / (2 * mass)), i, grad.numel())
    to_mass = total_in(-to_exponent / mass * (links + w * (shift + cut / mass)), c, int(others[4][-1]))
    return to_weight + to_mass[cluster]


@torch.library.register_fake("torch_gic::responsibility", lib=OPS)
def _(node_weight: Tensor, *others: Tensor) -> Tensor:
    return torch.empty_like(node_weight)


@torch.library.register_fake("torch_gic::responsibility_backward", lib=OPS)
def _(grad: Tensor, node_weight: Tensor, *others: Tensor) -> Tensor:
    return torch.empty_like(node_weight)


def _setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    node_weight, *others = ctx.saved_tensors
    if torch.is_grad_enabled():  # somebody wants the gradient of this gradient: PyTorch finds it in the reference
        found = torch.autograd.grad(reference(node_weight, *others), node_weight, grad, create_graph=True)[0]
    else:
        found = torch.ops.torch_gic.responsibility_backward(grad, node_weight, *others)
    return found, *[None] * len(others)


torch.library.register_autograd("torch_gic::responsibility", _backward, setup_context=_setup_context, lib=OPS)
