"""Node-induced coarsening: select, reduce, connect, and the way back."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.nn.pool.select import SelectOutput
from torch_geometric.typing import SparseTensor
from torch_geometric.utils import scatter

from torch_gic._checks import as_edge_list, check_batch, check_features, number_clusters
from torch_gic.coarsening import cluster_max
from torch_gic.nn.conv.explain import ExplainableConv
from torch_gic.nn.pool.cluster_connect import ClusterConnect
from torch_gic.nn.pool.vigmm_select import VIGMMSelect

REDUCTIONS = ("max", "sum", "mean")


class VIGMMPoolOutput(NamedTuple):
    """A coarsened batch of graphs. ``select.cluster_index`` holds the cluster of each fine node: a coarse node."""

    x: Tensor
    edge_index: Tensor
    edge_weight: Tensor
    batch: Tensor
    select: SelectOutput


class VIGMMPool(ExplainableConv):
    r"""The vertex-induced Gaussian mixture pooling operator from the
    `"Gaussian-Induced Convolution for Graphs" <https://arxiv.org/abs/1811.04393>`_ paper

    .. math::
        p(\phi(v_i)) = \sum_{c=1}^{C} \pi_c \, \mathcal{N} \Bigl( \phi(v_i); \mu_c, \frac{1}{\beta w_i} \mathbf{I} \Bigr),
        \qquad \langle \phi(v_i), \phi(v_j) \rangle = K_{ij},

    fitted to each graph by kernel EM. A graph of :math:`m` nodes gets :math:`C = \lceil \mathrm{ratio} \cdot m \rceil`
    components, and each node goes to its likeliest one. The coarse graph has one node per component:

    .. math::
        \mathbf{x}^{\prime}_c = \max_{i \in c} \mathbf{x}_i, \qquad
        \mathbf{A}^{\prime} = \mathbf{P}^{\top} \mathbf{A} \mathbf{P}.

    With the default affinity, EM descends the weighted cut of the paper's Proposition 1

    .. math::
        \sum_{c=1}^{C} \frac{\mathrm{links}(\mathcal{V}_c, \mathcal{V} \setminus \mathcal{V}_c)}{w(\mathcal{V}_c)}, \qquad
        w_i = h(\mathbf{x}_i) \cdot d_i,

    With constant :math:`h`, this is the normalised cut: see :func:`~torch_gic.coarsening.soft.cut_affinity`. First, nodes
    merge into clusters (:func:`~torch_gic.coarsening.merge_clusters`). Then they move to clusters of their neighbours while
    that lowers the cut (:func:`~torch_gic.coarsening.move_nodes`). The time per round is linear in the edges.

    - Every graph gets as many clusters as were asked for.
    - Nothing is random. The order of the nodes matters only between nodes that look the same.
    - The influence :math:`h` is learnt, and is between 1/2 and 3/2. Clusters are hard, so its gradient is that of the
      responsibilities. The value of the output does not depend on them.
    - The direction of edges does not matter for the clusters, only for :math:`\mathbf{A}^{\prime}`.
    - A cluster is mostly, but not always, connected. A node without edges may join any cluster.
    - Masks of PyG's explainers multiply the edge weights, and so reach the layers after the pooling.

    Args:
        in_channels (int, optional): Size of each feature vector, or :obj:`-1` to take it from the first input. With
            :obj:`None`, :math:`h` is 1 and nothing is learnt.
        ratio (float or int, optional): As a float, the share of nodes that remain, rounded up. As an int, the number of nodes
            that remain per graph; smaller graphs keep all. (default: :obj:`0.25`)
        affinity (str, optional): The inner products that EM compares. With :obj:`"cut"`, EM cuts few and weak edges.
            :obj:`"laplacian"` is as printed: :math:`w_i = h(\mathbf{x}_i)` and the normalised Laplacian. Its clusters cut
            about as much as random ones. (default: :obj:`"cut"`)
        soft (bool, optional): Whether a node may belong to several clusters during EM. This takes time and memory
            :math:`m \cdot C`. With :obj:`"cut"`, the clusters are the same or about as good.
            (default: :obj:`True` for :obj:`"laplacian"`, as printed, else :obj:`False`)
        beta (float, optional): The precision :math:`\beta` of the responsibilities. (default: :obj:`None`. For :obj:`"cut"`
            this is 16 times the mean cluster size in soft EM, and 4 times in the gradient. For :obj:`"laplacian"` it is 1, the
            printed unit covariance)
        num_iterations (int, optional): The largest number of EM iterations. (default: :obj:`20`)
        reduce (str, optional): How to aggregate the features in a cluster: :obj:`"max"`, :obj:`"sum"` or :obj:`"mean"`.
            (default: :obj:`"max"`)
        remove_self_loops (bool, optional): Whether to remove the self-loops of :math:`\mathbf{A}^{\prime}`. They hold the
            weight of the edges inside the clusters. (default: :obj:`False`)

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F)`, edge indices :math:`(2, |\mathcal{E}|)`, edge weights
          :math:`(|\mathcal{E}|)` *(optional)*, batch vector :math:`(|\mathcal{V}|)` *(optional)*
        - **output:** :class:`VIGMMPoolOutput`: features :math:`(|\mathcal{V}^{\prime}|, F)`, edge indices
          :math:`(2, |\mathcal{E}^{\prime}|)`, edge weights :math:`(|\mathcal{E}^{\prime}|)`, batch vector
          :math:`(|\mathcal{V}^{\prime}|)`, and the selection

    Example:
        >>> import torch
        >>> from torch_gic import VIGMMPool
        >>> triangles = torch.tensor([[0, 0, 1, 2, 3, 3, 4], [1, 2, 2, 3, 4, 5, 5]])  # two, with an edge between them
        >>> pool = VIGMMPool(in_channels=8, ratio=2)
        >>> out = pool(torch.randn(6, 8), triangles)
        >>> out.select.cluster_index.tolist()
        [0, 0, 0, 1, 1, 1]
        >>> out.edge_index.tolist(), out.edge_weight.tolist()
        ([[0, 0, 1], [0, 1, 1]], [3.0, 1.0, 3.0])
        >>> pool.lift(out.x, out.select).shape
        torch.Size([6, 8])
    """

    def __init__(
        self,
        in_channels: int | None,
        ratio: float | int = 0.25,
        affinity: str = "cut",
        soft: bool | None = None,
        beta: float | None = None,
        num_iterations: int = 20,
        reduce: str = "max",
        remove_self_loops: bool = False,
    ) -> None:
        super().__init__(aggr=None)
        if reduce not in REDUCTIONS:
            raise ValueError(f"Expected 'reduce' to be one of {REDUCTIONS} (got {reduce!r})")
        self.select = VIGMMSelect(in_channels, ratio, affinity, soft, beta, num_iterations)
        self.reduce = reduce
        self.connect = ClusterConnect(remove_self_loops)

    def reset_parameters(self) -> None:
        self.select.reset_parameters()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | SparseTensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        cluster: Tensor | None = None,
    ) -> VIGMMPoolOutput:
        r"""Forward pass.

        Args:
            x (torch.Tensor): The node features.
            edge_index (torch.Tensor or SparseTensor): The edges, in any form PyG accepts.
            edge_weight (torch.Tensor, optional): Their weights, finite and non-negative. (default: ones)
            batch (torch.Tensor, optional): The graph of each node. (default: all in one)
            cluster (torch.Tensor, optional): The cluster of each node, from :class:`~torch_gic.PreCoarsen`. Clusters are
                numbered from 0 in each graph, or over all graphs. (default: computed)
        """
        check_features(x, -1)
        edge_weight = self.masked_weight(edge_index, edge_weight)
        edge_index, edge_weight, num_nodes = as_edge_list(edge_index, edge_weight, x.size(0), look=cluster is not None)
        check_batch(batch, num_nodes, edge_index, look=cluster is not None)  # else the selection looks at values
        batch = edge_index.new_zeros(num_nodes) if batch is None else batch.long()  # loaders may give int32
        if cluster is None:
            select = self.select(x, edge_index, edge_weight, batch)
        else:
            cluster, num_clusters = torch.compiler.disable(number_clusters)(cluster, batch)  # looks at values
            node = torch.arange(num_nodes, device=x.device)
            select = SelectOutput(node, num_nodes, cluster, num_clusters, x.new_ones(num_nodes))
        if select.weight.requires_grad:
            x = x * select.weight.unsqueeze(1)
        if self.reduce == "max":
            x = cluster_max(x, select.cluster_index, select.num_clusters)
        else:
            x = scatter(x, select.cluster_index, dim_size=select.num_clusters, reduce=self.reduce)
        if edge_weight is None:
            edge_weight = x.new_ones(edge_index.size(1))
        connect = self.connect(select, edge_index, edge_weight, batch)
        self.mark_masked(connect.edge_index)
        return VIGMMPoolOutput(x, connect.edge_index, connect.edge_attr, connect.batch, select)

    @staticmethod
    def lift(x: Tensor, select: SelectOutput) -> Tensor:
        """Brings features of the clusters back to the nodes: each node gets those of its cluster."""
        if not isinstance(select, SelectOutput):
            raise TypeError(f"Expected 'select' to be that of the output, out.select (got {type(select).__name__})")
        if x.size(0) != select.num_clusters:
            raise ValueError(f"Expected 'x' to have {select.num_clusters} rows, one per cluster (got {x.size(0)})")
        return x[select.cluster_index]

    def __repr__(self) -> str:
        select = self.select
        return f"{self.__class__.__name__}({select.in_channels}, ratio={select.ratio}, affinity={select.affinity!r})"
