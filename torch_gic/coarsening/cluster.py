"""Clusters of a graph, without a model."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.typing import SparseTensor

from torch_gic._checks import as_edge_list, check_at_least, check_batch
from torch_gic.coarsening.order import graph_order
from torch_gic.coarsening.select import coarsen


def cluster(
    edge_index: Tensor | SparseTensor,
    num_clusters: int | None = None,
    ratio: float | None = None,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    max_size: int | None = None,
    num_nodes: int | None = None,
    num_iterations: int = 20,
) -> Tensor:
    r"""Clusters the nodes of each graph, with few and weak edges between clusters.

    This is the coarsening of :class:`~torch_gic.VIGMMPool` without a model. Every graph gets exactly the number of clusters
    that was asked for, and no cluster is empty. Nothing is random. Edges count in both directions.

    Args:
        edge_index (torch.Tensor or SparseTensor): The edges, in any form PyG accepts.
        num_clusters (int, optional): The number of clusters per graph. A graph with fewer nodes gets one per node.
        ratio (float, optional): The number of clusters per node, in :math:`(0, 1]`, in place of :obj:`num_clusters`.
        edge_weight (torch.Tensor, optional): Their weights, finite and non-negative. (default: ones)
        batch (torch.Tensor, optional): The graph of each node. (default: all in one)
        max_size (int, optional): The largest number of nodes per cluster, for clusters that serve as mini-batches. With it,
            only the number of edges cut counts, and nothing else balances the clusters. So choose it little above the mean,
            such as 1.1 times. (default: any size; the normalised cut balances the clusters)
        num_nodes (int, optional): The number of nodes. (default: inferred)
        num_iterations (int, optional): The largest number of rounds in which nodes move between clusters.
            (default: :obj:`20`)

    Returns:
        The cluster of each node. Clusters are numbered from 0, graph after graph.

    Shapes:
        - **input:** edge indices :math:`(2, |\mathcal{E}|)`, edge weights :math:`(|\mathcal{E}|)` *(optional)*, batch
          :math:`(|\mathcal{V}|)` *(optional)*
        - **output:** clusters :math:`(|\mathcal{V}|)`

    Example:
        >>> import torch
        >>> from torch_gic import cluster
        >>> path = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
        >>> cluster(path, num_clusters=2).tolist()
        [0, 0, 0, 1, 1, 1]
    """
    if (num_clusters is None) == (ratio is None):
        hint = "" if max_size is None else "; for the fewest clusters of 'max_size' nodes, pass ratio=1 / max_size"
        raise ValueError(f"Expected either 'num_clusters' or 'ratio' (got {num_clusters} and {ratio}){hint}")
    if num_clusters is not None:
        check_at_least(num_clusters, "num_clusters", 1)
    elif not (isinstance(ratio, float | int) and not isinstance(ratio, bool) and 0 < ratio <= 1):
        raise ValueError(f"Expected 'ratio' to be in (0, 1] (got {ratio})")
    if max_size is not None:
        check_at_least(max_size, "max_size", 1)
    check_at_least(num_iterations, "num_iterations", 1)
    if num_nodes is None and batch is not None:
        num_nodes = batch.numel()
    edge_index, edge_weight, num_nodes = as_edge_list(edge_index, edge_weight, num_nodes)
    check_batch(batch, num_nodes, edge_index, look=False)  # the selection looks at values
    batch = edge_index.new_zeros(num_nodes) if batch is None else batch.long()
    influence = torch.ones(num_nodes, device=edge_index.device)
    order = graph_order(batch, edge_index, influence)
    graphs = order.sort_edges(edge_index), edge_weight, influence, order.sort(batch), order.num_graphs
    wanted = num_clusters if num_clusters is not None else float(ratio or 0)
    return order.restore(coarsen(*graphs, wanted, num_iterations, min(max_size or 0, num_nodes)).cluster)
