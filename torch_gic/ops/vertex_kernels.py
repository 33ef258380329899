r"""The kernels :math:`K_{ij} = \langle \phi(v_i), \phi(v_j) \rangle` by which coarsening compares vertices.

Each is given by its diagonal and its product with a matrix: one sparse product, never the kernel itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.utils import scatter


class VertexKernel(NamedTuple):
    diagonal: Tensor
    product: Callable[[Tensor], Tensor]


def undirected_adjacency(edge_index: Tensor, edge_weight: Tensor, num_nodes: int) -> Tensor:
    r"""The sparse matrix :math:`(\mathbf{A} + \mathbf{A}^{\top}) / 2` in float64: a kernel is symmetric, and rounding must
    not decide between clusters."""
    entries = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    weight = edge_weight.detach().double().repeat(2) / 2
    present = weight > 0
    return torch.sparse_coo_tensor(
        entries[:, present], weight[present], (num_nodes, num_nodes), check_invariants=False
    ).coalesce()


def vertex_volume(adjacency: Tensor, batch: Tensor, num_graphs: int) -> Tensor:
    """The degree of each vertex with one more loop, of the mean edge weight of its graph (1 if it has no edge).

    The loop gives isolated vertices a volume, and in the cut kernel it is what holds a vertex to its own cluster. Being
    as heavy as an edge, it leaves the clusters the same whatever unit the edge weights are in.
    """
    graph = batch[adjacency.indices()[0]]
    total = scatter(adjacency.values(), graph, dim_size=num_graphs, reduce="sum")
    count = torch.bincount(graph, minlength=num_graphs)
    loop = torch.where(count > 0, total / count.clamp(min=1), torch.ones_like(total))
    return _degree(adjacency) + loop[batch]


def cut_kernel(adjacency: Tensor, vertex_weight: Tensor, batch: Tensor, num_graphs: int) -> VertexKernel:
    r"""The kernel with which weighted kernel k-means minimises the weighted cut of the paper's Proposition 1

    .. math::
        \mathbf{K} = \lambda \mathbf{W}^{-1} - \mathbf{W}^{-1} \mathbf{L} \mathbf{W}^{-1},
        \qquad \mathbf{W} = \mathrm{diag}(\mathbf{w}), \quad \mathbf{L} = \mathbf{D} - \mathbf{A}

    (Dhillon, Guan and Kulis, "Weighted Graph Cuts without Eigenvectors", 2007). The first term does not change which
    partition is best; :math:`\lambda`, the largest ratio of volume to weight in the graph, makes it just strong enough to
    keep every :math:`K_{ii}` positive.
    """
    volume = vertex_volume(adjacency, batch, num_graphs)
    shift = scatter((volume / vertex_weight).detach(), batch, dim_size=num_graphs, reduce="max")[batch]
    degree, w = _degree(adjacency), vertex_weight.unsqueeze(1)

    def product(v: Tensor) -> Tensor:
        laplacian = degree.unsqueeze(1) * v / w - adjacency @ (v / w)
        return (shift.unsqueeze(1) * v - laplacian) / w

    diagonal = shift / vertex_weight - (degree - _loop(adjacency)) / vertex_weight.square()
    return VertexKernel(diagonal, product)


def laplacian_kernel(adjacency: Tensor) -> VertexKernel:
    r"""The kernel that the paper prints: the normalised Laplacian
    :math:`\mathbf{K} = \mathbf{I} - \mathbf{D}^{-1/2} \mathbf{A} \mathbf{D}^{-1/2}`.

    Neighbours have a negative product in it, so EM drives them apart: its clusters cut about as much as random ones.
    """
    degree = _degree(adjacency)
    inverse_root = degree.masked_fill(degree == 0, 1).rsqrt().unsqueeze(1)
    diagonal = 1 - _loop(adjacency) * inverse_root.squeeze(1).square()
    return VertexKernel(diagonal, lambda v: v - inverse_root * (adjacency @ (inverse_root * v)))


def _degree(adjacency: Tensor) -> Tensor:
    return scatter(adjacency.values(), adjacency.indices()[0], dim_size=adjacency.size(0), reduce="sum")


def _loop(adjacency: Tensor) -> Tensor:
    row, col = adjacency.indices()
    return scatter(adjacency.values() * (row == col), row, dim_size=adjacency.size(0), reduce="sum")
