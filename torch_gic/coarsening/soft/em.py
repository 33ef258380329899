"""Node-induced Gaussian mixture: kernel EM over the nodes of each graph."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.utils import scatter

from torch_gic.coarsening.check import check_affinity, check_clusters_of_graphs, check_ranks
from torch_gic.coarsening.segments import lowest, on_grid
from torch_gic.coarsening.soft.affinity import Affinity
from torch_gic.kernels.library import OPS, register_reference
from torch_gic.kernels.operands import check_boundaries, check_tensor

OPS.define(
    "soft_em(Tensor diagonal, Tensor rowptr, Tensor col, Tensor value, Tensor node_weight, Tensor rank, Tensor ptr,"
    " Tensor offset, Tensor beta, Tensor cluster, SymInt num_iterations) -> Tensor"
)


def soft_em(
    affinity: Affinity,
    node_weight: Tensor,
    rank: Tensor,
    ptr: Tensor,
    offset: Tensor,
    beta: Tensor,
    cluster: Tensor,
    num_iterations: int,
) -> Tensor:
    r"""The clusters of kernel EM, "Coarsening: Vertex-Induced GMM" of the
    `"Gaussian-Induced Convolution for Graphs" <https://arxiv.org/abs/1811.04393>`_ paper. One iteration is

    .. math::
        s_c &= \sum_j w_j p_{jc}, \qquad \mathbf{B} = \mathbf{K} \, \mathrm{diag}(\mathbf{w}) \, \mathbf{P}, \qquad
        \pi_c = \frac{1}{m} \sum_i p_{ic}

        D_{ic} &= \lVert \phi(v_i) - \mu_c \rVert^2
        = K_{ii} - \frac{2 B_{ic}}{s_c} + \frac{\sum_j w_j p_{jc} B_{jc}}{s_c^2}

        p_{ic} &= \mathrm{softmax}_c \bigl( \log \pi_c - \tfrac{\beta}{2} \, w_i D_{ic} \bigr).

    After the last one, each node goes to its likeliest cluster, and a cluster that got none takes back the node of
    lowest rank that it started with.

    Args:
        affinity (Affinity): The inner products :math:`\mathbf{K}`.
        node_weight (torch.Tensor): The weight :math:`w_i > 0` of each node.
        rank (torch.Tensor): The rank of each node in its graph.
        ptr (torch.Tensor): Where the nodes of each graph begin, which stand side by side, and end.
        offset (torch.Tensor): Where the clusters of each graph begin, and end.
        beta (torch.Tensor): The precision :math:`\beta` of each graph.
        cluster (torch.Tensor): The cluster of each node at the start, none of them empty.
        num_iterations (int): The number of iterations.

    Shapes:
        - **input:** node weights, ranks, clusters :math:`(|\mathcal{V}|)`, boundaries :math:`(B + 1)`, precisions
          :math:`(B)`
        - **output:** the cluster of each node :math:`(|\mathcal{V}|)`
    """
    return torch.ops.torch_gic.soft_em(*affinity, node_weight, rank, ptr, offset, beta, cluster, num_iterations)


@register_reference("soft_em")
def reference(
    diagonal: Tensor,
    rowptr: Tensor,
    col: Tensor,
    value: Tensor,
    node_weight: Tensor,
    rank: Tensor,
    ptr: Tensor,
    offset: Tensor,
    beta: Tensor,
    cluster: Tensor,
    num_iterations: int,
) -> Tensor:
    """The affinities of all graphs are one matrix; a column is the c-th cluster of each graph."""
    check_affinity(diagonal, rowptr, col, value, node_weight, ptr, beta)
    check_tensor(offset, "offset", (ptr.numel(),))
    check_boundaries(offset, "offset", node_weight.numel(), most=True)
    batch = torch.repeat_interleave(torch.arange(beta.numel(), device=ptr.device), ptr.diff())
    check_ranks(rank, batch, ptr)
    check_clusters_of_graphs(cluster, "cluster", batch, offset)
    if cluster.numel() == 0:
        return cluster.clone()
    row = Affinity(diagonal, rowptr, col, value).row
    matrix = torch.sparse_coo_tensor(torch.stack([row, col]), value, (rank.numel(),) * 2, is_coalesced=True)
    local = cluster - offset[batch]
    p = F.one_hot(local, int(offset.diff().max())).to(node_weight.dtype)
    exists = torch.arange(p.size(1), device=ptr.device) < offset.diff()[batch].unsqueeze(1)
    for _ in range(num_iterations):
        p = exponents(p, matrix, diagonal, node_weight, batch, beta).masked_fill(~exists, -torch.inf).softmax(dim=1)
    return take_back(on_grid(p).argmax(dim=1) + offset[batch], cluster, rank, int(offset[-1]))


def take_back(chosen: Tensor, cluster: Tensor, rank: Tensor, num_clusters: int) -> Tensor:
    """A cluster that nobody chose takes back the node of lowest rank that it started with."""
    seed = lowest((rank,), cluster, num_clusters)
    if bool((seed < 0).any()):
        raise ValueError("Expected 'cluster' to leave none empty")
    while True:  # a node that is taken back may have been the last of another cluster; once taken back, it stays
        empty = torch.bincount(chosen, minlength=seed.numel()) == 0
        if not bool(empty.any()):
            return chosen
        chosen[seed[empty]] = empty.nonzero().view(-1)


def exponents(p: Tensor, matrix: Tensor, diagonal: Tensor, node_weight: Tensor, batch: Tensor, beta: Tensor) -> Tensor:
    r"""The exponents :math:`\log \pi_c - \frac{\beta}{2} w_i D_{ic}` of the next responsibilities."""
    num_graphs, tiny = beta.numel(), torch.finfo(p.dtype).tiny  # a cluster may lose all its weight: 0 instead of 0 / 0
    w = node_weight.unsqueeze(1)
    s = scatter(w * p, batch, dim_size=num_graphs, reduce="sum").clamp(min=tiny)
    b = diagonal.unsqueeze(1) * w * p + matrix @ (w * p)
    spread = scatter(w * p * b, batch, dim_size=num_graphs, reduce="sum") / s / s
    distance = diagonal.unsqueeze(1) - 2 * b / s[batch] + spread[batch]
    log_pi = scatter(p, batch, dim_size=num_graphs, reduce="mean").clamp(min=tiny).log()
    return log_pi[batch] - beta[batch].unsqueeze(1) / 2 * w * distance


@torch.library.register_fake("torch_gic::soft_em", lib=OPS)
def _(
    diagonal: Tensor, rowptr: Tensor, col: Tensor, value: Tensor, node_weight: Tensor, rank: Tensor, *others: object
) -> Tensor:
    return torch.empty_like(rank)
