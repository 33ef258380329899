r"""The inner products :math:`K_{ij} = \langle \phi(v_i), \phi(v_j) \rangle` by which soft EM compares nodes."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.utils import cumsum, scatter

from torch_gic.coarsening.graph import UndirectedGraph
from torch_gic.coarsening.segments import total_in
from torch_gic.kernels.sizes import true_places


class Affinity(NamedTuple):
    """A sparse symmetric matrix: its diagonal, and its other entries in compressed rows, sorted by column."""

    diagonal: Tensor
    rowptr: Tensor
    col: Tensor
    value: Tensor

    @property
    def row(self) -> Tensor:
        """The row of each entry beside the diagonal."""
        return UndirectedGraph(*self[1:]).row


def cut_affinity(graph: UndirectedGraph, node_weight: Tensor, batch: Tensor, num_graphs: int) -> Affinity:
    r"""The affinity with which EM descends the weighted cut of the paper's Proposition 1

    .. math::
        \mathbf{K} = \lambda \mathbf{W}^{-1} - \mathbf{W}^{-1} \mathbf{L} \mathbf{W}^{-1},
        \qquad \mathbf{W} = \mathrm{diag}(\mathbf{w}), \quad \mathbf{L} = \mathbf{D} - \mathbf{A}.

    For a partition of a graph into :math:`C` clusters, the distortion of weighted kernel k-means in it is

    .. math::
        \sum_c \sum_{i \in \mathcal{V}_c} w_i \lVert \phi(v_i) - \mu_c \rVert^2
        = \mathrm{const} + \sum_c \frac{\mathrm{links}(\mathcal{V}_c, \mathcal{V} \setminus \mathcal{V}_c)}{w(\mathcal{V}_c)}

    (Dhillon, Guan and Kulis, "Weighted Graph Cuts without Eigenvectors", 2007; derived in ``docs/coarsening.md``). The
    shift :math:`\lambda` adds the same to every partition. With :math:`\lambda = 2 \max_i d_i / w_i`, per graph,
    :math:`\mathbf{K}` is positive semidefinite. So vectors :math:`\phi(v_i)` exist, and no iteration of EM lowers the
    likelihood.
    """
    shift = scatter((graph.degree / node_weight).detach(), batch, dim_size=num_graphs, reduce="max")
    row, rowptr, col, weight, loop = _split(graph)
    diagonal = 2 * shift[batch] / node_weight - (graph.degree - loop) / node_weight.square()
    return Affinity(diagonal, rowptr, col, weight / (node_weight[row] * node_weight[col]))


def laplacian_affinity(graph: UndirectedGraph) -> Affinity:
    r"""The affinity that the paper prints: the normalised Laplacian
    :math:`\mathbf{K} = \mathbf{I} - \mathbf{D}^{-1/2} \mathbf{A} \mathbf{D}^{-1/2}`.

    Neighbours have a negative product in it, so EM drives them apart: its clusters cut about as much as random ones.
    """
    row, rowptr, col, weight, loop = _split(graph)
    degree = graph.degree.masked_fill(graph.degree == 0, 1)
    return Affinity(1 - loop / degree, rowptr, col, -weight / (degree[row] * degree[col]).sqrt())


def _split(graph: UndirectedGraph) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The edges between nodes, and the weight of the loop of each node."""
    row, between = graph.row, graph.row != graph.col
    loop = total_in(torch.where(between, 0, graph.weight), row, graph.num_nodes)
    rowptr, kept = cumsum(total_in(between.long(), row, graph.num_nodes)), true_places(between)
    return row[kept], rowptr, graph.col[kept], graph.weight[kept], loop
