"""Coarsening with soft EM between merging and moving."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_gic.coarsening.select import Coarsening, coarsen
from torch_gic.coarsening.soft.affinity import cut_affinity, laplacian_affinity
from torch_gic.coarsening.soft.em import soft_em

# In the affinity of the cut, w_i D_ic differs between clusters by about 1 / cluster size: precisions are multiples of it.
# EM loses clusters to the largest one below this (on REDDIT-BINARY, whose hubs tempt the most; from 4 on elsewhere):
# `python -m benchmark.pooling --parts precision` shows it.
SHARPNESS = 16
PRINTED_PRECISION = 1.0  # the unit covariance of the paper


def soft_coarsen(
    edge_index: Tensor,
    edge_weight: Tensor | None,
    influence: Tensor,
    batch: Tensor,
    num_graphs: int,
    ratio: float | int,
    num_iterations: int,
    affinity: str = "cut",
    beta: float | None = None,
) -> Coarsening:
    """As :func:`~torch_gic.coarsening.coarsen`, with :func:`soft_em` behind merging. With the printed affinity
    :obj:`"laplacian"`, nothing is moved afterwards, and a node weighs its influence."""
    by_degree = affinity == "cut"
    graphs = edge_index, edge_weight, influence, batch, num_graphs, ratio
    merged = coarsen(*graphs, num_iterations=0, by_degree=by_degree)
    if by_degree:
        compared = cut_affinity(merged.graph, merged.node_weight, batch, num_graphs)
    else:
        compared = laplacian_affinity(merged.graph)
    precision = precisions(merged, beta, SHARPNESS if by_degree else None)
    cluster = soft_em(compared, *merged[3:], precision, merged.cluster, num_iterations)
    if by_degree:
        return coarsen(*graphs, num_iterations, start=cluster)
    return merged._replace(cluster=cluster)


def precisions(found: Coarsening, beta: float | None, sharpness: float | None) -> Tensor:
    """The precision of the mixture of each graph: as given, times the mean cluster size, or as printed."""
    size, num_clusters = found.ptr.diff().double(), found.offset.diff()
    if beta is not None or sharpness is None:
        return torch.full_like(size, PRINTED_PRECISION if beta is None else beta)
    return sharpness * size / num_clusters.clamp(min=1)
