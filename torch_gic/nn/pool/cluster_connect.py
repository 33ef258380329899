"""The Connect step of coarsening: the edges between clusters."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.nn.pool.connect import Connect, ConnectOutput
from torch_geometric.nn.pool.select import SelectOutput


class ClusterConnect(Connect):
    r"""Joins clusters by the sum of the weights of the edges between their vertices, :math:`\mathbf{A}^{\prime} =
    \mathbf{P}^{\top} \mathbf{A} \mathbf{P}`.

    No weight is lost: edges inside a cluster become its self-loop. A symmetric adjacency stays symmetric.

    Args:
        remove_self_loops (bool, optional): Whether to leave out the edges inside clusters. (default: :obj:`False`)

    Shapes:
        - **input:** a :class:`SelectOutput`, edges :math:`(2, |\mathcal{E}|)`, edge weights :math:`(|\mathcal{E}|)`
          *(optional)*, batch :math:`(|\mathcal{V}|)` *(optional)*
        - **output:** a :class:`ConnectOutput` with the coalesced edges, their weights and the batch of the clusters
    """

    def __init__(self, remove_self_loops: bool = False) -> None:
        super().__init__()
        self.remove_self_loops = remove_self_loops

    def forward(
        self,
        select_output: SelectOutput,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> ConnectOutput:
        if edge_attr is None:
            edge_attr = torch.ones(edge_index.size(1), device=edge_index.device)
        num_clusters = select_output.num_clusters
        row, col = select_output.cluster_index[edge_index]
        if self.remove_self_loops:
            between = row != col
            row, col, edge_attr = row[between], col[between], edge_attr[between]
        # As PyG's coalesce, which cannot be exported.
        key, position = torch.unique(row * num_clusters + col, return_inverse=True)
        edge_attr = edge_attr.new_zeros(key.size(0)).index_add(0, position, edge_attr)
        edge_index = torch.stack([key // num_clusters, key % num_clusters])
        return ConnectOutput(edge_index, edge_attr, self.get_pooled_batch(select_output, batch))
