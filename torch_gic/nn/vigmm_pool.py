"""Vertex-induced coarsening: select, reduce, connect, and the way back."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.nn.pool.select import SelectOutput
from torch_geometric.typing import SparseTensor
from torch_geometric.utils import scatter

from torch_gic._checks import as_edge_list, check_batch, check_features
from torch_gic.nn.cluster_connect import ClusterConnect
from torch_gic.nn.vigmm_select import VIGMMSelect


class VIGMMPoolOutput(NamedTuple):
    """A coarsened batch of graphs. ``select.cluster_index`` is the cluster (a vertex of this graph) of each fine vertex."""

    x: Tensor
    edge_index: Tensor
    edge_weight: Tensor
    batch: Tensor
    select: SelectOutput


class VIGMMPool(torch.nn.Module):
    r"""The vertex-induced Gaussian mixture pooling operator from the
    `"Gaussian-Induced Convolution for Graphs" <https://arxiv.org/abs/1811.04393>`_ paper

    .. math::
        p(\phi(v_i)) = \sum_{c=1}^{C} \pi_c \, \mathcal{N} \Bigl( \phi(v_i); \mu_c, \frac{1}{\beta w_i} \mathbf{I} \Bigr),
        \qquad \langle \phi(v_i), \phi(v_j) \rangle = K_{ij},

    fitted to each graph by EM in the kernel (:func:`~torch_gic.ops.vigmm`), with :math:`C = \lceil \mathrm{ratio} \cdot m
    \rceil` components for :math:`m` vertices. Each vertex then goes to its likeliest component, and

    .. math::
        \mathbf{x}^{\prime}_c = \max_{i \in c} \mathbf{x}_i, \qquad
        \mathbf{A}^{\prime} = \mathbf{P}^{\top} \mathbf{A} \mathbf{P}.

    The weights :math:`w_i` come from a learnt function :math:`h(\mathbf{x}_i)`. The clusters themselves are hard, so the
    gradient reaches :math:`h` through the responsibilities, with the value of the output unchanged.

    EM starts from seeds spread over each graph, without randomness, and a cluster that loses all its vertices gets back
    its seed: every graph gets all the clusters it asked for. Direction of edges does not matter for the clusters, only for
    :math:`\mathbf{A}^{\prime}`, whose self-loops hold the edges inside the clusters. A cluster is mostly, but not always,
    connected; vertices without an edge join any cluster of their graph.

    Args:
        in_channels (int): Size of each attribute vector, or :obj:`-1` to take it from the first input.
        ratio (float or int, optional): The share of vertices that remain, rounded up, or their number in each graph.
            (default: :obj:`0.25`)
        kernel (str, optional): :obj:`"cut"`: :math:`w_i = h(\mathbf{x}_i) \cdot \mathrm{volume}_i` and the kernel for which
            EM cuts few and weak edges. :obj:`"laplacian"`: the printed one, :math:`w_i = h(\mathbf{x}_i)` and the
            normalised Laplacian, whose clusters cut about as much as random ones. (default: :obj:`"cut"`)
        beta (float, optional): The precision :math:`\beta`. (default: :obj:`None`, 32 times the mean cluster size for
            :obj:`"cut"`; 1, the printed unit covariance, for :obj:`"laplacian"`)
        num_iterations (int, optional): The number of EM iterations. (default: :obj:`10`)

    Shapes:
        - **input:** attributes :math:`(|\mathcal{V}|, F)`, edge indices :math:`(2, |\mathcal{E}|)`, edge weights
          :math:`(|\mathcal{E}|)` *(optional)*, batch vector :math:`(|\mathcal{V}|)` *(optional)*
        - **output:** :class:`VIGMMPoolOutput`: attributes :math:`(|\mathcal{V}^{\prime}|, F)`, edge indices
          :math:`(2, |\mathcal{E}^{\prime}|)`, edge weights :math:`(|\mathcal{E}^{\prime}|)`, batch vector
          :math:`(|\mathcal{V}^{\prime}|)`, and the selection
    """

    def __init__(
        self,
        in_channels: int,
        ratio: float | int = 0.25,
        kernel: str = "cut",
        beta: float | None = None,
        num_iterations: int = 10,
    ) -> None:
        super().__init__()
        self.select = VIGMMSelect(in_channels, ratio, kernel, beta, num_iterations)
        self.connect = ClusterConnect()

    def reset_parameters(self) -> None:
        self.select.reset_parameters()

    @torch.compiler.disable  # how many clusters and edges there are depends on the data: a compiled model calls it as it is
    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | SparseTensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> VIGMMPoolOutput:
        r"""Forward pass.

        Args:
            x (torch.Tensor): The vertex attributes.
            edge_index (torch.Tensor or SparseTensor): The edges, in any form PyG accepts.
            edge_weight (torch.Tensor, optional): Their weights, finite and non-negative. (default: ones)
            batch (torch.Tensor, optional): The graph of each vertex. (default: all in one)
        """
        check_features(x, self.select.lin.in_channels, self.select.lin.weight.dtype)
        edge_index, edge_weight, num_nodes = as_edge_list(edge_index, edge_weight, x.size(0))
        check_batch(batch, num_nodes, edge_index)
        if edge_weight is None:
            edge_weight = x.new_ones(edge_index.size(1))
        if batch is None:
            batch = edge_index.new_zeros(num_nodes)
        select = self.select(x, edge_index, edge_weight, batch)
        x = scatter(x * select.weight.unsqueeze(1), select.cluster_index, dim_size=select.num_clusters, reduce="max")
        connect = self.connect(select, edge_index, edge_weight, batch)
        return VIGMMPoolOutput(x, connect.edge_index, connect.edge_attr, connect.batch, select)

    @staticmethod
    def lift(x: Tensor, select: SelectOutput) -> Tensor:
        """Brings attributes of the clusters back to the vertices: each vertex gets those of its cluster."""
        if x.size(0) != select.num_clusters:
            raise ValueError(f"Expected 'x' to have {select.num_clusters} rows, one a cluster (got {x.size(0)})")
        return x[select.cluster_index]

    def __repr__(self) -> str:
        select = self.select
        return f"{self.__class__.__name__}({select.lin.in_channels}, ratio={select.ratio}, kernel={select.kernel!r})"
