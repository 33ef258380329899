"""The edges between clusters."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_gic.coarsening.check import check_clusters
from torch_gic.kernels.library import OPS, register_reference
from torch_gic.kernels.operands import check_range, check_tensor
from torch_gic.kernels.sizes import new_size

OPS.define("cluster_edges(Tensor edge_index, Tensor cluster, SymInt num_clusters) -> (Tensor, Tensor)")


def cluster_edges(edge_index: Tensor, cluster: Tensor, num_clusters: int) -> tuple[Tensor, Tensor]:
    r"""The edges between clusters, each once, sorted by source and target. Also, for each edge, which of them it becomes.

    Shapes:
        - **input:** edges :math:`(2, |\mathcal{E}|)`, clusters :math:`(|\mathcal{V}|)`
        - **output:** edges :math:`(2, |\mathcal{E}^{\prime}|)`, positions :math:`(|\mathcal{E}|)`
    """
    found: tuple[Tensor, Tensor] = torch.ops.torch_gic.cluster_edges(edge_index, cluster, num_clusters)
    return found


@register_reference("cluster_edges")
def reference(edge_index: Tensor, cluster: Tensor, num_clusters: int) -> tuple[Tensor, Tensor]:
    check_tensor(edge_index, "edge_index", (2, None), torch.int64)
    check_range(edge_index, "edge_index", cluster.numel())
    check_clusters(cluster, cluster.numel(), num_clusters)
    row, col = cluster[edge_index]
    key, position = torch.unique(row * num_clusters + col, return_inverse=True)
    return torch.stack([key // max(num_clusters, 1), key % max(num_clusters, 1)]), position


@torch.library.register_fake("torch_gic::cluster_edges", lib=OPS)
def _(edge_index: Tensor, cluster: Tensor, num_clusters: int) -> tuple[Tensor, Tensor]:
    count = new_size()
    return edge_index.new_empty(2, count), edge_index.new_empty(edge_index.size(1))
