"""Clusters of a graph, and the graph that remains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.typing import SparseTensor
from torch_geometric.utils import scatter

from torch_gic._checks import as_edge_list
from torch_gic.visualize.drawing import (
    DARK,
    GREY,
    bare,
    distinct_colors,
    draw_edges,
    layout,
    new_axes,
    undirected,
    write_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_NUMBERED = 150  # nodes: more numbers than that cannot be read


def plot_clusters(edge_index: Tensor | SparseTensor, cluster: Tensor, pos: Tensor | None = None, ax: Any = None) -> Axes:
    r"""Draws a graph, each node in the colour and with the number of its cluster. Edges between clusters are dashed.

    Args:
        edge_index (torch.Tensor or SparseTensor): The edges.
        cluster (torch.Tensor): The cluster of each node, from :func:`~torch_gic.cluster`, or
            :obj:`out.select.cluster_index` of :class:`~torch_gic.VIGMMPool`.
        pos (torch.Tensor, optional): Where to draw each node, ``[num_nodes, 2]``. (default: a spring layout, by networkx)
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: a new figure)

    Example:
        >>> import torch
        >>> from torch_gic import cluster
        >>> from torch_gic.visualize import plot_clusters
        >>> path = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
        >>> plot_clusters(path, cluster(path, num_clusters=2)).get_title()
        '2 clusters, 1 of 5 edges between them'
    """
    cluster, edge_index, pos, num_clusters = _prepare(edge_index, cluster, pos)
    ax = new_axes(ax)
    cut = cluster[edge_index[0]] != cluster[edge_index[1]]
    draw_edges(ax, pos, edge_index[:, ~cut], colors=DARK, linewidths=1.8)
    draw_edges(ax, pos, edge_index[:, cut], colors=GREY, linewidths=1, linestyles="dashed")
    colors = distinct_colors(num_clusters)
    numbered = cluster.numel() <= MAX_NUMBERED
    ax.scatter(*pos.t(), c=[colors[c] for c in cluster.tolist()], s=130 if numbered else 30, edgecolors=DARK, linewidths=0.8)
    if numbered:  # tells clusters apart where colours repeat, or are printed in grey
        write_numbers(ax, pos, cluster.tolist())
    ax.set_title(f"{num_clusters} clusters, {int(cut.sum())} of {cut.numel()} edges between them")
    return bare(ax)


def plot_coarse_graph(edge_index: Tensor | SparseTensor, cluster: Tensor, pos: Tensor | None = None, ax: Any = None) -> Axes:
    r"""Draws the graph of the clusters. A node grows with its members, an edge with the number of edges that it stands for.

    Beside :func:`plot_clusters` of the same arguments, clusters have the same place, colour and number.

    Args:
        edge_index (torch.Tensor or SparseTensor): The edges of the graph before coarsening.
        cluster (torch.Tensor): The cluster of each node.
        pos (torch.Tensor, optional): Where to draw each node, ``[num_nodes, 2]``; a cluster is drawn in the middle of its
            members. (default: a spring layout, by networkx)
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: a new figure)

    Example:
        >>> import torch
        >>> from torch_gic import cluster
        >>> from torch_gic.visualize import plot_coarse_graph
        >>> path = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
        >>> plot_coarse_graph(path, cluster(path, num_clusters=2)).get_title()
        '2 nodes, 1 edge'
    """
    cluster, edge_index, pos, num_clusters = _prepare(edge_index, cluster, pos)
    ax = new_axes(ax)
    centre = scatter(pos, cluster, dim_size=num_clusters, reduce="mean")
    links = cluster[edge_index].sort(dim=0).values
    pairs, count = links[:, links[0] != links[1]].unique(dim=1, return_counts=True)
    draw_edges(ax, centre, pairs, colors=GREY, linewidths=(0.8 * count).clamp(1, 8).tolist())
    size = (60 * torch.bincount(cluster, minlength=num_clusters)).clamp(150, 900)
    ax.scatter(*centre.t(), c=distinct_colors(num_clusters), s=size, edgecolors=DARK, linewidths=0.8)
    write_numbers(ax, centre, range(num_clusters))
    ax.update_datalim(pos.numpy())
    ax.set_title(f"{num_clusters} nodes, {count.numel()} edge{'' if count.numel() == 1 else 's'}")
    return bare(ax)


def _prepare(edge_index: Tensor | SparseTensor, cluster: Tensor, pos: Tensor | None) -> tuple[Tensor, Tensor, Tensor, int]:
    """Clusters, each edge once, the place of each node, and the number of clusters."""
    edge_index, _, num_nodes = as_edge_list(edge_index, None, cluster.numel())
    cluster, edge_index = cluster.cpu(), undirected(edge_index.cpu())
    if cluster.dim() != 1 or cluster.dtype != torch.int64 or bool((cluster < 0).any()):
        kind = f"{cluster.dtype}, {list(cluster.shape)}"
        raise ValueError(f"Expected 'cluster' to hold a number from 0 on per node, as torch.int64 (got {kind})")
    members = torch.bincount(cluster)
    if bool((members == 0).any()):
        raise ValueError(f"Expected every cluster of 'cluster' to have a node (got none in cluster {int(members.argmin())})")
    return cluster, edge_index, layout(edge_index, num_nodes, pos), members.numel()
