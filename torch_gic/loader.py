"""Cluster-wise training without METIS."""

from __future__ import annotations

import math
from typing import Any

import torch_geometric.loader
from torch import Tensor
from torch_geometric.data import Data

from torch_gic._checks import count_nodes
from torch_gic.coarsening import cluster


class ClusterData(torch_geometric.loader.ClusterData):
    r"""PyG's :class:`~torch_geometric.loader.ClusterData` with parts made by :func:`~torch_gic.cluster` instead of METIS.

    Pass it to PyG's :class:`~torch_geometric.loader.ClusterLoader`. It needs neither pyg-lib nor torch-sparse.

    Args:
        data (torch_geometric.data.Data): The graph.
        num_parts (int): The number of parts.
        imbalance (float, optional): The largest allowed ratio of the size of a part to the mean size.
            (default: :obj:`1.1`)
        **kwargs (optional): Further arguments of PyG's class, such as :obj:`save_dir` and
            :obj:`keep_inter_cluster_edges`.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from torch_geometric.loader import ClusterLoader
        >>> from torch_gic.loader import ClusterData
        >>> path = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
        >>> parts = ClusterData(Data(x=torch.randn(6, 8), edge_index=path), num_parts=3)
        >>> [batch.num_nodes for batch in ClusterLoader(parts, batch_size=1)]
        [2, 2, 2]
    """

    def __init__(self, data: Data, num_parts: int, imbalance: float = 1.1, **kwargs: Any) -> None:
        if not imbalance >= 1:
            raise ValueError(f"Expected 'imbalance' to be at least 1 (got {imbalance})")
        if data.edge_index is None:
            raise ValueError("Expected 'data' to have an 'edge_index' (got none)")
        num_nodes = count_nodes(data)
        if not 1 <= num_parts <= num_nodes:
            raise ValueError(f"Expected 'num_parts' to be from 1 to {num_nodes}, the number of nodes (got {num_parts})")
        self.imbalance = imbalance
        kwargs.setdefault("log", False)  # it says METIS
        kwargs.setdefault("filename", f"cluster_{imbalance}.pt")
        super().__init__(data, num_parts, **kwargs)

    def _metis(self, edge_index: Tensor, num_nodes: int) -> Tensor:
        mean = num_nodes / self.num_parts
        largest = max(math.floor(self.imbalance * mean), math.ceil(mean))
        return cluster(edge_index, self.num_parts, max_size=largest, num_nodes=num_nodes)
