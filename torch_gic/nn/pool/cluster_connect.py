"""The Connect step of coarsening: the edges between clusters."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.nn.pool.connect import Connect, ConnectOutput
from torch_geometric.nn.pool.select import SelectOutput
from torch_geometric.utils import scatter

from torch_gic.coarsening import cluster_edges
from torch_gic.kernels.sizes import true_places

REDUCTIONS = ("sum", "mean")


class ClusterConnect(Connect):
    r"""Joins clusters by the sum of the weights of the edges between their nodes, :math:`\mathbf{A}^{\prime} =
    \mathbf{P}^{\top} \mathbf{A} \mathbf{P}`.

    No weight is lost: edges inside a cluster become its self-loop. A symmetric adjacency stays symmetric.

    Args:
        remove_self_loops (bool, optional): Whether to remove the edges inside clusters. (default: :obj:`False`)
        reduce (str, optional): How to aggregate the weights or features of the edges between two clusters: :obj:`"sum"` or
            :obj:`"mean"`. (default: :obj:`"sum"`)

    Shapes:
        - **input:** a :class:`SelectOutput`, edges :math:`(2, |\mathcal{E}|)`, edge weights :math:`(|\mathcal{E}|)` or edge
          features :math:`(|\mathcal{E}|, D)` *(optional)*, batch :math:`(|\mathcal{V}|)` *(optional)*
        - **output:** a :class:`ConnectOutput` with the coalesced edges, their weights or features, and the batch of the
          clusters. Edges without weights count as 1.
    """

    def __init__(self, remove_self_loops: bool = False, reduce: str = "sum") -> None:
        super().__init__()
        if reduce not in REDUCTIONS:
            raise ValueError(f"Expected 'reduce' to be one of {REDUCTIONS} (got {reduce!r})")
        self.remove_self_loops = remove_self_loops
        self.reduce = reduce

    def forward(
        self,
        select_output: SelectOutput,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> ConnectOutput:
        if edge_attr is None:
            edge_attr = torch.ones(edge_index.size(1), device=edge_index.device)
        _check(edge_attr, edge_index.size(1))
        cluster, num_clusters = select_output.cluster_index, select_output.num_clusters
        if not torch.compiler.is_compiling() and num_clusters > cluster.numel():  # memory is taken for every one
            raise ValueError(f"Expected 'select_output' to have at most {cluster.numel()} clusters (got {num_clusters})")
        if self.remove_self_loops:
            between = true_places(cluster[edge_index[0]] != cluster[edge_index[1]])
            edge_index, edge_attr = edge_index[:, between], edge_attr[between]
        edge_index, position = cluster_edges(edge_index, cluster, num_clusters)
        edge_attr = scatter(edge_attr, position, dim=0, dim_size=edge_index.size(1), reduce=self.reduce)
        return ConnectOutput(edge_index, edge_attr, self.get_pooled_batch(select_output, batch))

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}(remove_self_loops={self.remove_self_loops}, reduce={self.reduce!r})"


def _check(edge_attr: Tensor, num_edges: int) -> None:
    if edge_attr.dim() not in (1, 2) or edge_attr.size(0) != num_edges:
        shape = f"[{num_edges}] or [{num_edges}, channels]"
        raise ValueError(f"Expected 'edge_attr' to have shape {shape} (got {list(edge_attr.shape)})")
    if not edge_attr.is_floating_point():
        raise TypeError(f"Expected 'edge_attr' to be floating point (got {edge_attr.dtype}); .float() converts it")
