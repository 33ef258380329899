"""Which cluster each vertex goes to: start, EM and decision as one operation."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from torch_gic._checks import count_graphs
from torch_gic.coarsening.fill_clusters import fill_clusters
from torch_gic.coarsening.merge_clusters import merge_clusters
from torch_gic.coarsening.move_vertices import move_vertices
from torch_gic.coarsening.structural_rank import structural_rank
from torch_gic.coarsening.undirected_graph import UndirectedGraph, undirected_graph, vertex_volume
from torch_gic.coarsening.vertex_kernels import VertexKernel, cut_kernel, laplacian_kernel
from torch_gic.coarsening.vigmm import vigmm
from torch_gic.kernels.library import OPS, register_reference

# In the cut kernel, w_i D_ic differs between clusters by about 1 / cluster size: precisions are multiples of that size.
# EM loses clusters to the largest one below this (on REDDIT-BINARY, whose hubs tempt the most; from 4 on elsewhere):
# `python -m benchmark.pooling --parts precision` shows it.
SHARPNESS = 16
# The gradient comes from responsibilities that are not quite 1: at this precision most are above 0.9, and at 16 none is left.
GRADIENT_SHARPNESS = 4

OPS.define(
    "vigmm_select(Tensor edge_index, Tensor edge_weight, Tensor influence, Tensor batch, float ratio, SymInt? count,"
    " str kernel, bool soft, float? beta, SymInt num_iterations, SymInt max_size=0)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)"
)


def vigmm_select(
    edge_index: Tensor,
    edge_weight: Tensor,
    influence: Tensor,
    batch: Tensor,
    ratio: float | int,
    kernel: str,
    soft: bool,
    beta: float | None,
    num_iterations: int,
    max_size: int = 0,
) -> tuple[Tensor, Tensor, UndirectedGraph]:
    r"""Clusters the vertices of each graph by a vertex-induced Gaussian mixture: see :class:`~torch_gic.VIGMMPool`.

    Returns:
        The cluster of each vertex, the graph of each cluster, and the undirected graph that was clustered.

    Shapes:
        - **input:** edges :math:`(2, |\mathcal{E}|)`, edge weights :math:`(|\mathcal{E}|)`, influence :math:`h` and batch
          :math:`(|\mathcal{V}|)`
        - **output:** clusters :math:`(|\mathcal{V}|)`, graphs :math:`(|\mathcal{V}^{\prime}|)`
    """
    share, count = (1.0, ratio) if isinstance(ratio, int) else (ratio, None)
    cluster, cluster_batch, *graph = torch.ops.torch_gic.vigmm_select(
        edge_index, edge_weight.detach(), influence.detach(), batch, share, count, kernel, soft, beta, num_iterations, max_size
    )
    return cluster, cluster_batch, UndirectedGraph(*graph)


@register_reference("vigmm_select")
def reference(
    edge_index: Tensor,
    edge_weight: Tensor,
    influence: Tensor,
    batch: Tensor,
    ratio: float,
    count: int | None,
    kernel: str,
    soft: bool,
    beta: float | None,
    num_iterations: int,
    max_size: int = 0,
) -> tuple[Tensor, ...]:
    num_graphs = count_graphs(batch, edge_index, influence)
    order = torch.argsort(batch, stable=True)  # vertices of one graph side by side, also where 'batch' is not sorted
    place = torch.empty_like(order).scatter_(0, order, torch.arange(order.numel(), device=order.device))
    batch, influence = batch[order], influence[order].double()
    size = torch.bincount(batch, minlength=num_graphs)
    # 0.07 * 100 is a little more than 7 in floating point.
    num_clusters = (size.double() * (ratio * (1 - 1e-12))).ceil().long() if count is None else size.clamp(max=count)
    if max_size > 0 and bool((num_clusters * max_size < size).any()):
        which = int((num_clusters * max_size < size).nonzero()[0])
        nodes, clusters = int(size[which]), int(num_clusters[which])
        raise ValueError(
            f"Expected 'max_size' to be at least {-(-nodes // clusters)}, since graph {which} has {nodes} nodes for"
            f" {clusters} clusters (got {max_size})"
        )
    ptr, offset = (F.pad(counts.cumsum(0), (1, 0)) for counts in (size, num_clusters))

    graph = undirected_graph(place[edge_index], edge_weight, batch, num_graphs)
    vertex_weight = vertex_weights(graph, influence, batch, num_graphs, kernel)
    rank = structural_rank(graph, influence, ptr)
    graphs = graph.row, graph.col, graph.weight, vertex_weight, rank, ptr
    cluster = merge_clusters(*graphs, num_clusters, max_size)
    if max_size > 0:
        cluster = fill_clusters(graph.row, graph.col, graph.weight, rank, ptr, offset, cluster, max_size)
    if soft:
        precision = precisions(size, num_clusters, kernel, beta, SHARPNESS)
        compared = vertex_kernel(graph, vertex_weight, batch, num_graphs, kernel)
        cluster = vigmm(compared, vertex_weight, rank, ptr, offset, precision, cluster, num_iterations)
    if kernel == "cut":
        cluster = move_vertices(*graphs, offset, cluster, num_iterations, max_size)
    cluster_batch = torch.repeat_interleave(torch.arange(num_graphs, device=batch.device), num_clusters)
    return cluster[place], cluster_batch, order[graph.row], order[graph.col], graph.weight, graph.degree[place]


def vertex_weights(graph: UndirectedGraph, influence: Tensor, batch: Tensor, num_graphs: int, kernel: str) -> Tensor:
    """The weight of each vertex: its influence, with the cut kernel times its degree."""
    return influence * vertex_volume(graph, batch, num_graphs) if kernel == "cut" else influence


def vertex_kernel(graph: UndirectedGraph, vertex_weight: Tensor, batch: Tensor, num_graphs: int, kernel: str) -> VertexKernel:
    return cut_kernel(graph, vertex_weight, batch, num_graphs) if kernel == "cut" else laplacian_kernel(graph)


def precisions(size: Tensor, num_clusters: Tensor, kernel: str, beta: float | None, sharpness: int) -> Tensor:
    """The precision of the mixture of each graph: as given, as printed, or times the mean cluster size."""
    if beta is not None or kernel == "laplacian":
        return torch.full_like(size, 1.0 if beta is None else beta, dtype=torch.float64)
    return sharpness * size.double() / num_clusters.clamp(min=1)


@torch.library.register_fake("torch_gic::vigmm_select", lib=OPS)
def _(edge_index: Tensor, edge_weight: Tensor, influence: Tensor, batch: Tensor, *settings: Any) -> tuple[Tensor, ...]:
    num_clusters, num_entries = (torch.library.get_ctx().new_dynamic_size(min=least) for least in (1, 0))
    row, col = batch.new_empty(num_entries), batch.new_empty(num_entries)
    weight, degree = (influence.new_empty(n, dtype=torch.float64) for n in (num_entries, batch.numel()))
    return torch.empty_like(batch), batch.new_empty(num_clusters), row, col, weight, degree
