"""How sure the mixture is of a cluster: the way by which a gradient reaches the weights of the vertices."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.utils import softmax

from torch_gic.coarsening.segments import total_in
from torch_gic.coarsening.vertex_kernels import VertexKernel


def responsibility(
    kernel: VertexKernel, vertex_weight: Tensor, beta: Tensor, batch: Tensor, cluster: Tensor, num_clusters: int
) -> Tensor:
    r"""The responsibility :math:`p_{ic}` of the cluster of each vertex for it, of one more iteration of EM
    (:func:`~torch_gic.coarsening.vigmm`) on given clusters. A vertex chooses between its own cluster and those of its
    neighbours, so time and memory are linear in the edges.

    Args:
        kernel (VertexKernel): The kernel :math:`\mathbf{K}`.
        vertex_weight (torch.Tensor): The weight :math:`w_i > 0` of each vertex; the result is differentiable in it, and in
            the entries of the kernel.
        beta (torch.Tensor): The precision :math:`\beta` of each graph.
        batch (torch.Tensor): The graph of each vertex.
        cluster (torch.Tensor): The cluster of each vertex.
        num_clusters (int): The number of clusters of all graphs.

    Shapes:
        - **input:** vertex weights, batch and clusters :math:`(|\mathcal{V}|)`, precisions :math:`(B)`
        - **output:** responsibilities :math:`(|\mathcal{V}|)`
    """
    num_nodes, w = cluster.numel(), vertex_weight
    vertex = torch.arange(num_nodes, device=cluster.device)
    pair = torch.cat([vertex, kernel.row]) * num_clusters + torch.cat([cluster, cluster[kernel.col]])
    pair, position = torch.unique(pair, return_inverse=True)
    own = position[:num_nodes]
    i, c = pair // max(num_clusters, 1), pair % max(num_clusters, 1)

    s = total_in(w, cluster, num_clusters)
    b = total_in(torch.cat([kernel.diagonal * w, kernel.value * w[kernel.col]]), position, pair.numel())
    spread = total_in(w * b[own], cluster, num_clusters) / s.square()
    distance = kernel.diagonal[i] - 2 * b / s[c] + spread[c]
    log_pi = torch.bincount(cluster, minlength=num_clusters).log().to(w.dtype)  # all of one graph are divided by its size
    return softmax(log_pi[c] - beta[batch[i]] / 2 * w[i] * distance, i, num_nodes=num_nodes)[own]
