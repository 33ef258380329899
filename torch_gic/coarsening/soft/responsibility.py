"""How sure the mixture is of a cluster, for any affinity."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.utils import softmax

from torch_gic.coarsening.segments import total_in
from torch_gic.coarsening.soft.affinity import Affinity


def soft_responsibility(
    affinity: Affinity, node_weight: Tensor, beta: Tensor, batch: Tensor, cluster: Tensor, num_clusters: int
) -> Tensor:
    r"""The responsibility :math:`p_{ic}` of the cluster of each node for it, of one more iteration of EM
    (:func:`~torch_gic.coarsening.soft.soft_em`) on given clusters. A node chooses between its own cluster and those of its
    neighbours, so time and memory are linear in the edges.

    Args:
        affinity (Affinity): The inner products :math:`\mathbf{K}`.
        node_weight (torch.Tensor): The weight :math:`w_i > 0` of each node; the result is differentiable in it, and in
            the affinities.
        beta (torch.Tensor): The precision :math:`\beta` of each graph.
        batch (torch.Tensor): The graph of each node.
        cluster (torch.Tensor): The cluster of each node.
        num_clusters (int): The number of clusters of all graphs.

    Shapes:
        - **input:** node weights, batch and clusters :math:`(|\mathcal{V}|)`, precisions :math:`(B)`
        - **output:** responsibilities :math:`(|\mathcal{V}|)`
    """
    num_nodes, w = cluster.numel(), node_weight
    node = torch.arange(num_nodes, device=cluster.device)
    pair = torch.cat([node, affinity.row]) * num_clusters + torch.cat([cluster, cluster[affinity.col]])
    pair, position = torch.unique(pair, return_inverse=True)
    own = position[:num_nodes]
    i, c = pair // max(num_clusters, 1), pair % max(num_clusters, 1)

    s = total_in(w, cluster, num_clusters)
    b = total_in(torch.cat([affinity.diagonal * w, affinity.value * w[affinity.col]]), position, pair.numel())
    spread = total_in(w * b[own], cluster, num_clusters) / s.square()
    distance = affinity.diagonal[i] - 2 * b / s[c] + spread[c]
    log_pi = torch.bincount(cluster, minlength=num_clusters).log().to(w.dtype)  # all of one graph are divided by its size
    return softmax(log_pi[c] - beta[batch[i]] / 2 * w[i] * distance, i, num_nodes=num_nodes)[own]
