r"""The kernels :math:`K_{ij} = \langle \phi(v_i), \phi(v_j) \rangle` by which coarsening compares vertices."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor
from torch_geometric.utils import scatter

from torch_gic.coarsening.segments import total_in
from torch_gic.coarsening.undirected_graph import UndirectedGraph


class VertexKernel(NamedTuple):
    """A sparse symmetric matrix: its diagonal, and its other entries sorted by row and column."""

    diagonal: Tensor
    row: Tensor
    col: Tensor
    value: Tensor


def cut_kernel(graph: UndirectedGraph, vertex_weight: Tensor, batch: Tensor, num_graphs: int) -> VertexKernel:
    r"""The kernel with which EM descends the weighted cut of the paper's Proposition 1

    .. math::
        \mathbf{K} = \lambda \mathbf{W}^{-1} - \mathbf{W}^{-1} \mathbf{L} \mathbf{W}^{-1},
        \qquad \mathbf{W} = \mathrm{diag}(\mathbf{w}), \quad \mathbf{L} = \mathbf{D} - \mathbf{A}.

    For a partition of a graph into :math:`C` clusters, the distortion of weighted kernel k-means in it is

    .. math::
        \sum_c \sum_{i \in \mathcal{V}_c} w_i \lVert \phi(v_i) - \mu_c \rVert^2
        = \mathrm{const} + \sum_c \frac{\mathrm{links}(\mathcal{V}_c, \mathcal{V} \setminus \mathcal{V}_c)}{w(\mathcal{V}_c)}

    (Dhillon, Guan and Kulis, "Weighted Graph Cuts without Eigenvectors", 2007; derived in ``docs/coarsening.md``). The
    shift :math:`\lambda` adds the same to every partition. At :math:`\lambda = 2 \max_i d_i / w_i`, taken in each graph,
    :math:`\mathbf{K}` is positive semidefinite, so vectors :math:`\phi(v_i)` exist and no iteration of EM is a step back.
    """
    shift = scatter((graph.degree / vertex_weight).detach(), batch, dim_size=num_graphs, reduce="max")
    row, col, weight, loop = _split(graph)
    diagonal = 2 * shift[batch] / vertex_weight - (graph.degree - loop) / vertex_weight.square()
    return VertexKernel(diagonal, row, col, weight / (vertex_weight[row] * vertex_weight[col]))


def laplacian_kernel(graph: UndirectedGraph) -> VertexKernel:
    r"""The kernel that the paper prints: the normalised Laplacian
    :math:`\mathbf{K} = \mathbf{I} - \mathbf{D}^{-1/2} \mathbf{A} \mathbf{D}^{-1/2}`.

    Neighbours have a negative product in it, so EM drives them apart: its clusters cut about as much as random ones.
    """
    row, col, weight, loop = _split(graph)
    degree = graph.degree.masked_fill(graph.degree == 0, 1)
    return VertexKernel(1 - loop / degree, row, col, -weight / (degree[row] * degree[col]).sqrt())


def _split(graph: UndirectedGraph) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The edges between vertices, and the weight of the loop of each vertex."""
    loops = graph.row == graph.col
    loop = total_in(graph.weight[loops], graph.row[loops], graph.degree.numel())
    return graph.row[~loops], graph.col[~loops], graph.weight[~loops], loop
