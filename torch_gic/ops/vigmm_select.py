"""Which cluster each vertex goes to: start, EM and decision as one operation."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.utils import cumsum

from torch_gic._library import OPS, register_reference
from torch_gic.ops.seed_clusters import seed_clusters
from torch_gic.ops.vertex_kernels import VertexKernel, cut_kernel, laplacian_kernel, undirected_adjacency, vertex_volume
from torch_gic.ops.vigmm import vigmm

# In the cut kernel, distances to clusters differ by about 1 / cluster size. On six data sets (MUTAG to REDDIT-BINARY)
# a smaller factor than this lost clusters, a larger one left EM at its start.
SHARPNESS = 32

OPS.define(
    "vigmm_select(Tensor edge_index, Tensor edge_weight, Tensor influence, Tensor batch, float ratio, SymInt? count,"
    " str kernel, float? beta, SymInt num_iterations) -> (Tensor, Tensor, Tensor, Tensor)"
)


def vigmm_select(
    edge_index: Tensor,
    edge_weight: Tensor,
    influence: Tensor,
    batch: Tensor,
    ratio: float | int,
    kernel: str,
    beta: float | None,
    num_iterations: int,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Clusters the vertices of each graph by a vertex-induced Gaussian mixture: see :class:`~torch_gic.VIGMMPool`.

    Returns:
        The cluster of each vertex, the responsibility that its cluster has for it, and the graph of each cluster. The
        responsibility is differentiable in :obj:`influence`, through the last iteration of EM; those before only say where
        it starts.

    Shapes:
        - **input:** edges :math:`(2, |\mathcal{E}|)`, edge weights :math:`(|\mathcal{E}|)`, influence :math:`h` and batch
          :math:`(|\mathcal{V}|)`
        - **output:** clusters and responsibilities :math:`(|\mathcal{V}|)`, graphs :math:`(|\mathcal{V}^{\prime}|)`
    """
    share, count = (1.0, ratio) if isinstance(ratio, int) else (ratio, None)
    cluster, responsibility, cluster_batch, _ = torch.ops.torch_gic.vigmm_select(
        edge_index, edge_weight, influence, batch, share, count, kernel, beta, num_iterations
    )
    return cluster, responsibility, cluster_batch


class Mixture(NamedTuple):
    """What EM needs to know of the graphs."""

    kernel: VertexKernel
    vertex_weight: Tensor
    batch: Tensor
    num_clusters: Tensor
    beta: Tensor


@register_reference("vigmm_select")
def reference(
    edge_index: Tensor,
    edge_weight: Tensor,
    influence: Tensor,
    batch: Tensor,
    ratio: float,
    count: int | None,
    kernel: str,
    beta: float | None,
    num_iterations: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The last of the results, the responsibilities before the last iteration, is for the gradient."""
    if batch.numel() == 0:
        return batch.clone(), influence.clone(), batch.clone(), influence.new_empty(0, 0)
    mixture = _mixture(edge_index, edge_weight, influence, batch, ratio, count, kernel, beta)
    # Light vertices are seeds first: a hub as a seed would take all its neighbours with it.
    start, seed = seed_clusters(edge_index[:, edge_weight > 0], -mixture.vertex_weight, batch, mixture.num_clusters)
    previous = vigmm(*mixture, start=start, num_iterations=num_iterations - 1)
    p = vigmm(*mixture, start=previous, num_iterations=1)
    offset = cumsum(mixture.num_clusters)
    cluster = _keep_all(p.argmax(dim=1) + offset[batch], seed)
    graphs = torch.arange(mixture.num_clusters.numel(), device=batch.device)
    cluster_batch = torch.repeat_interleave(graphs, mixture.num_clusters)
    return cluster, _own(p, cluster, offset[batch]).to(influence.dtype), cluster_batch, previous


@torch.library.register_fake("torch_gic::vigmm_select", lib=OPS)
def _(edge_index: Tensor, edge_weight: Tensor, influence: Tensor, batch: Tensor, *settings: Any) -> tuple[Tensor, ...]:
    num_clusters, widest = (torch.library.get_ctx().new_dynamic_size(min=1) for _ in range(2))
    previous = influence.new_empty(batch.numel(), widest, dtype=torch.float64)
    return torch.empty_like(batch), torch.empty_like(influence), batch.new_empty(num_clusters), previous


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    *tensors, ctx.ratio, ctx.count, ctx.kernel, ctx.beta, _ = inputs
    cluster, _, _, previous = output
    ctx.save_for_backward(*tensors, cluster, previous)


def _backward(ctx: Any, _: Tensor, grad: Tensor, *others: Tensor) -> tuple[Tensor | None, ...]:
    edge_index, edge_weight, influence, batch, cluster, previous = ctx.saved_tensors
    gradient = torch.zeros_like(influence)
    if batch.numel() > 0:
        with torch.enable_grad():
            influence = influence.detach().requires_grad_()
            mixture = _mixture(edge_index, edge_weight, influence, batch, ctx.ratio, ctx.count, ctx.kernel, ctx.beta)
            p = vigmm(*mixture, start=previous, num_iterations=1)
            own = _own(p, cluster, cumsum(mixture.num_clusters)[batch])
        (gradient,) = torch.autograd.grad(own, influence, grad.to(own.dtype))
    return None, None, gradient, None, None, None, None, None, None


torch.library.register_autograd("torch_gic::vigmm_select", _backward, setup_context=_setup_context, lib=OPS)


def _mixture(
    edge_index: Tensor,
    edge_weight: Tensor,
    influence: Tensor,
    batch: Tensor,
    ratio: float,
    count: int | None,
    kernel: str,
    beta: float | None,
) -> Mixture:
    num_graphs = int(batch.max()) + 1
    size = torch.bincount(batch, minlength=num_graphs)
    num_clusters = (ratio * size.double()).ceil().long() if count is None else size.clamp(max=count)
    adjacency = undirected_adjacency(edge_index, edge_weight, batch.numel())
    vertex_weight = influence.double()
    if kernel == "cut":
        vertex_weight = vertex_weight * vertex_volume(adjacency, batch, num_graphs)
        vertex_kernel = cut_kernel(adjacency, vertex_weight, batch, num_graphs)
        precision = SHARPNESS * size.double() / num_clusters.clamp(min=1)
    else:
        vertex_kernel = laplacian_kernel(adjacency)
        precision = torch.ones_like(size, dtype=torch.float64)
    if beta is not None:
        precision = torch.full_like(precision, beta)
    return Mixture(vertex_kernel, vertex_weight, batch, num_clusters, precision)


def _own(p: Tensor, cluster: Tensor, offset: Tensor) -> Tensor:
    """The responsibility that the cluster of each vertex has for it."""
    return p.gather(1, (cluster - offset).unsqueeze(1)).squeeze(1)


def _keep_all(cluster: Tensor, seed: Tensor) -> Tensor:
    """Gives each cluster that lost all its vertices the one it started from. That may empty the cluster which had this
    vertex, so it repeats; a vertex once returned stays, so it ends."""
    cluster = cluster.clone()
    while True:
        empty = torch.bincount(cluster, minlength=seed.numel()) == 0
        if not bool(empty.any()):
            return cluster
        cluster[seed[empty]] = empty.nonzero().squeeze(1)
