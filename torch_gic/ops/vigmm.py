"""Vertex-induced Gaussian mixture: kernel EM over the vertices of each graph."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.utils import scatter

from torch_gic.ops.vertex_kernels import VertexKernel


def vigmm(
    kernel: VertexKernel,
    vertex_weight: Tensor,
    batch: Tensor,
    num_clusters: Tensor,
    beta: Tensor,
    start: Tensor,
    num_iterations: int,
) -> Tensor:
    r"""The responsibilities of kernel EM, "Coarsening: Vertex-Induced GMM" of the
    `"Gaussian-Induced Convolution for Graphs" <https://arxiv.org/abs/1811.04393>`_ paper. One iteration is

    .. math::
        s_c &= \sum_j w_j p_{jc}, \qquad \mathbf{B} = \mathbf{K} \, \mathrm{diag}(\mathbf{w}) \, \mathbf{P}, \qquad
        \pi_c = \frac{1}{m} \sum_i p_{ic}

        D_{ic} &= \lVert \phi(v_i) - \mu_c \rVert^2
        = K_{ii} - \frac{2 B_{ic}}{s_c} + \frac{\sum_j w_j p_{jc} B_{jc}}{s_c^2}

        p_{ic} &= \mathrm{softmax}_c \bigl( \log \pi_c - \tfrac{\beta}{2} \, w_i D_{ic} \bigr).

    Args:
        kernel (VertexKernel): The kernel :math:`\mathbf{K}`.
        vertex_weight (torch.Tensor): The influence :math:`w_i > 0` of each vertex.
        batch (torch.Tensor): The graph of each vertex.
        num_clusters (torch.Tensor): The number of clusters of each graph.
        beta (torch.Tensor): The precision :math:`\beta` of each graph.
        start (torch.Tensor): The cluster in which each vertex starts, counted from 0 in each graph, or the responsibilities.
        num_iterations (int): The number of EM iterations.

    Shapes:
        - **input:** vertex weights, batch and start :math:`(|\mathcal{V}|)`, or start as the output, counts and precisions
          :math:`(B)`
        - **output:** responsibilities :math:`(|\mathcal{V}|, \max_g C_g)`, zero beyond the clusters of a graph
    """
    # A column is the c-th cluster of every graph at once: sums over 'batch' keep the graphs apart.
    exists = torch.arange(int(num_clusters.max()), device=batch.device) < num_clusters[batch].unsqueeze(1)
    p = start if start.dim() == 2 else F.one_hot(start, exists.size(1)).to(vertex_weight.dtype)
    for _ in range(num_iterations):
        p = _iterate(p, kernel, vertex_weight, batch, num_clusters.numel(), beta, exists)
    return p


def _iterate(
    p: Tensor, kernel: VertexKernel, vertex_weight: Tensor, batch: Tensor, num_graphs: int, beta: Tensor, exists: Tensor
) -> Tensor:
    tiny = torch.finfo(p.dtype).tiny  # a cluster may lose all its weight: its terms then become 0, not 0 / 0
    w = vertex_weight.unsqueeze(1)
    s = scatter(w * p, batch, dim_size=num_graphs, reduce="sum").clamp(min=tiny)
    b = kernel.product(w * p)
    spread = scatter(w * p * b, batch, dim_size=num_graphs, reduce="sum") / s / s
    distance = kernel.diagonal.unsqueeze(1) - 2 * b / s[batch] + spread[batch]
    log_pi = scatter(p, batch, dim_size=num_graphs, reduce="mean").clamp(min=tiny).log()
    logits = log_pi[batch] - beta[batch].unsqueeze(1) / 2 * w * distance
    return logits.masked_fill(~exists, -torch.inf).softmax(dim=1)
