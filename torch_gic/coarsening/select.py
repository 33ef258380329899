"""Stage 5, all stages as one operation: graph, rank, merge, move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch_geometric.utils import cumsum

from torch_gic.coarsening.check import check_clusters_of_graphs, check_graphs
from torch_gic.coarsening.fill import fill_clusters
from torch_gic.coarsening.graph import UndirectedGraph, node_volume, undirected_graph
from torch_gic.coarsening.merge import merge_clusters
from torch_gic.coarsening.move import MOST_TOGETHER, move_nodes
from torch_gic.coarsening.rank import NUM_REFINEMENTS, structural_rank
from torch_gic.coarsening.refine import GROWTH, NUM_PASSES, refine_clusters
from torch_gic.coarsening.segments import ROUNDING
from torch_gic.kernels.library import OPS, register_reference
from torch_gic.kernels.operands import can_look
from torch_gic.kernels.sizes import new_size

OPS.define(
    "coarsen(Tensor edge_index, Tensor? edge_weight, Tensor influence, Tensor batch, SymInt num_graphs, float ratio,"
    " SymInt? count, SymInt num_iterations, SymInt max_size, bool by_degree, Tensor? start,"
    # What all backends have to agree on stands in Python only.
    f" SymInt num_refinements={NUM_REFINEMENTS}, SymInt most_together={MOST_TOGETHER}, float rounding={ROUNDING},"
    f" SymInt num_passes={NUM_PASSES}, SymInt growth={GROWTH})"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)"
)


class Coarsening(NamedTuple):
    """The cluster of each node, and what the gradient needs."""

    cluster: Tensor  # of each node
    batch: Tensor  # the graph of each cluster
    graph: UndirectedGraph
    node_weight: Tensor
    rank: Tensor  # of each node in its graph
    ptr: Tensor  # where the nodes of each graph begin, and end
    offset: Tensor  # where the clusters of each graph begin, and end


def coarsen(
    edge_index: Tensor,
    edge_weight: Tensor | None,
    influence: Tensor,
    batch: Tensor,
    num_graphs: int,
    ratio: float | int,
    num_iterations: int,
    max_size: int = 0,
    by_degree: bool = True,
    start: Tensor | None = None,
) -> Coarsening:
    r"""Clusters the nodes of each graph with a low weighted cut, in five stages:

    1. the undirected graph (:func:`undirected_graph`), and the weights :math:`w_i = h_i d_i` of its nodes
       (:func:`node_volume`),
    2. the ranks of its nodes, which break ties (:func:`structural_rank`),
    3. merging of nodes to clusters (:func:`merge_clusters`),
    4. moving of nodes between clusters (:func:`move_nodes`), or with :obj:`max_size` :func:`fill_clusters` and
       :func:`refine_clusters`,
    5. this function, which selects the numbers of clusters and returns what the gradient needs.

    Args:
        edge_index (torch.Tensor): The edges.
        edge_weight (torch.Tensor, optional): Their weights.
        influence (torch.Tensor): The influence :math:`h_i > 0` of each node.
        batch (torch.Tensor): The graph of each node, sorted.
        num_graphs (int): The number of graphs.
        ratio (float or int): As a float, the number of clusters per node, rounded up. As an int, their number per graph.
        num_iterations (int): The largest number of iterations of moving.
        max_size (int, optional): The largest number of nodes per cluster. 0 means any. (default: :obj:`0`)
        by_degree (bool, optional): Whether :math:`w_i = h_i d_i`, or else :math:`w_i = h_i`. (default: :obj:`True`)
        start (torch.Tensor, optional): The clusters to start from, in place of merging.

    Shapes:
        - **input:** edges :math:`(2, |\mathcal{E}|)`, edge weights :math:`(|\mathcal{E}|)`, influence, batch and start
          :math:`(|\mathcal{V}|)`
    """
    share, count = (1.0, ratio) if isinstance(ratio, int) else (ratio, None)
    if edge_weight is not None:
        edge_weight = edge_weight.detach()
        if edge_weight.dtype not in (torch.float32, torch.float64):  # kernels take no half precision
            edge_weight = edge_weight.float()
    if max_size > 0:
        _check_room(*_sizes(batch, num_graphs, share, count), max_size)
    settings = num_graphs, share, count, num_iterations, max_size, by_degree, start
    cluster, of_cluster, rowptr, col, weight, *others = torch.ops.torch_gic.coarsen(
        edge_index, edge_weight, influence.detach().double(), batch, *settings
    )
    return Coarsening(cluster, of_cluster, UndirectedGraph(rowptr, col, weight), *others)


@register_reference("coarsen")
def reference(
    edge_index: Tensor,
    edge_weight: Tensor | None,
    influence: Tensor,
    batch: Tensor,
    num_graphs: int,
    ratio: float,
    count: int | None,
    num_iterations: int,
    max_size: int,
    by_degree: bool,
    start: Tensor | None,
    num_refinements: int = NUM_REFINEMENTS,
    most_together: int = MOST_TOGETHER,
    rounding: float = ROUNDING,
    num_passes: int = NUM_PASSES,
    growth: int = GROWTH,
    merge: Callable[..., Tensor] = merge_clusters,
    move: Callable[..., Tensor] = move_nodes,
) -> tuple[Tensor, ...]:
    """Kernels of single stages may take the place of merging and moving."""
    check_graphs(edge_index, edge_weight, influence, batch, num_graphs)
    _check_numbers(ratio, count, max_size, num_passes, growth)
    size, num_clusters = _sizes(batch, num_graphs, ratio, count)
    ptr, offset = cumsum(size), cumsum(num_clusters)
    max_size = min(max_size, batch.numel())  # no cluster has more
    if max_size > 0 and can_look(size):
        _check_room(size, num_clusters, max_size)
    if start is not None:
        check_clusters_of_graphs(start, "start", batch, offset)

    graph = undirected_graph(edge_index, edge_weight, batch, num_graphs)
    node_weight = influence * node_volume(graph, batch, num_graphs) if by_degree else influence.clone()
    rank = structural_rank(graph, influence, batch, num_refinements)
    cluster = merge(graph, node_weight, rank, ptr, offset, max_size, rounding) if start is None else start
    if max_size > 0:
        cluster = fill_clusters(graph, rank, ptr, offset, cluster, max_size)
        cluster = refine_clusters(graph, rank, ptr, offset, cluster, num_iterations, max_size, num_passes, growth)
    else:
        cluster = move(graph, node_weight, rank, ptr, offset, cluster, num_iterations, most_together, rounding)
    of_cluster = torch.repeat_interleave(torch.arange(num_graphs, device=batch.device), num_clusters)
    return cluster, of_cluster, *graph, node_weight, rank, ptr, offset


def _sizes(batch: Tensor, num_graphs: int, ratio: float, count: int | None) -> tuple[Tensor, Tensor]:
    """The numbers of nodes and of clusters of each graph."""
    size = torch.bincount(batch, minlength=num_graphs)
    # 0.07 * 100 is a little more than 7 in floating point.
    return size, (size.double() * (ratio * (1 - 1e-12))).ceil().long() if count is None else size.clamp(max=count)


def _check_numbers(ratio: float, count: int | None, max_size: int, num_passes: int, growth: int) -> None:
    if not 0 < ratio <= 1:
        raise ValueError(f"Expected 'ratio' to be in (0, 1] (got {ratio})")
    if count is not None and count < 1:
        raise ValueError(f"Expected 'count' to be at least 1 (got {count})")
    if max_size < 0:
        raise ValueError(f"Expected 'max_size' to be at least 0 (got {max_size})")
    if num_passes < 1:
        raise ValueError(f"Expected 'num_passes' to be at least 1 (got {num_passes})")
    if not 2 <= growth <= 1024:  # else groups would never be large enough
        raise ValueError(f"Expected 'growth' to lie in [2, 1024] (got {growth})")


def _check_room(size: Tensor, num_clusters: Tensor, max_size: int) -> None:
    full = num_clusters < -(-size // max_size)
    if bool(full.any()):
        which = int(full.nonzero()[0])
        nodes, clusters = int(size[which]), int(num_clusters[which])
        raise ValueError(
            f"Expected 'max_size' to be at least {-(-nodes // clusters)}, since graph {which} has {nodes} nodes for"
            f" {clusters} clusters (got {max_size})"
        )


@torch.library.register_fake("torch_gic::coarsen", lib=OPS)
def _(
    edge_index: Tensor, edge_weight: Tensor | None, influence: Tensor, batch: Tensor, num_graphs: int, *settings: Any
) -> tuple[Tensor, ...]:
    num_clusters = 0 if statically_known_true(batch.numel() == 0) else new_size(1)  # what follows may need at least one
    num_entries = new_size()
    size = num_graphs + 1
    return (
        torch.empty_like(batch),
        batch.new_empty(num_clusters),
        batch.new_empty(batch.numel() + 1),
        batch.new_empty(num_entries),
        influence.new_empty(num_entries),
        torch.empty_like(influence),
        torch.empty_like(batch),
        batch.new_empty(size),
        batch.new_empty(size),
    )
