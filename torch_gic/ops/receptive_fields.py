"""Multi-scale receptive fields: the normalised powers of the adjacency on one shared support."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.typing import SparseTensor

from torch_gic._checks import as_edge_list, check_at_least, check_batch
from torch_gic.ops.extend_walks import extend_walks, strongest, sum_duplicates


def receptive_fields(
    edge_index: Tensor | SparseTensor,
    edge_weight: Tensor | None = None,
    *,
    num_nodes: int | None = None,
    batch: Tensor | None = None,
    num_scales: int = 7,
    add_self_loops: bool = True,
    max_neighbors: int | None = None,
) -> tuple[Tensor, Tensor]:
    r"""The multi-scale receptive fields of every vertex, "Multi-Scale Receptive Fields" and Definition 2 of the
    `"Gaussian-Induced Convolution for Graphs" <https://arxiv.org/abs/1811.04393>`_ paper

    .. math::
        \tilde{\mathbf{A}}_k = \mathbf{A}^k \, \mathrm{diag}(\mathbf{A}^k \mathbf{1})^{-1}, \qquad k = 1, \ldots, K,

    where :math:`A_{ij}` is the weight of the edge from :math:`j` to :math:`i`. Parallel edges add up. All scales share
    one list of pairs; a weight of zero says that the pair is not in the field of that scale.

    The recursion :math:`\tilde{\mathbf{A}}_{k+1} = \tilde{\mathbf{A}}_k \mathbf{T}_k` with
    :math:`\mathbf{T}_k = \mathrm{diag}(\mathbf{d}_k) \, \mathbf{A} \, \mathrm{diag}(\mathbf{d}_{k+1})^{-1}` and
    :math:`\mathbf{d}_k = \mathbf{A}^k \mathbf{1}` never forms a power itself: on an undirected graph all its numbers lie
    in :math:`[0, 1]` however large the weights are. It runs in float64 and is differentiable in :obj:`edge_weight`.

    Args:
        edge_index (torch.Tensor or SparseTensor): The edges, in any form PyG accepts.
        edge_weight (torch.Tensor, optional): Their weights, finite and non-negative. (default: ones)
        num_nodes (int, optional): The number of vertices. (default: inferred)
        batch (torch.Tensor, optional): The graph of each vertex; edges between graphs are an error.
            (default: :obj:`None`)
        num_scales (int, optional): The number of scales :math:`K`. (default: :obj:`7`)
        add_self_loops (bool, optional): Whether to add 1 to every :math:`A_{ii}`, so that each vertex is in its own
            field. Without it, a vertex that no edge enters (:math:`d_j = 0`) is in no field. (default: :obj:`True`)
        max_neighbors (int, optional): At most this many pairs a vertex, the strongest by the sum of their weights over
            the scales. Walks then follow, from each vertex, only its :obj:`max_neighbors` strongest edges and keep as
            many strongest ends after every step: the cost is linear in what is kept. The normalisers :math:`d_k` stay
            those of the full graph, so a kept weight is never above the exact one and equals it wherever no walk was
            cut. Ties go to the lower vertex number. (default: :obj:`None`)

    Returns:
        The pairs ``field_index`` (row 0: neighbour :math:`j`, row 1: vertex :math:`i`, sorted by :math:`i`, then
        :math:`j`) and ``field_weight``, the weights :math:`(\tilde{A}_k)_{ij}`.

    Shapes:
        - **input:** edge indices :math:`(2, |\mathcal{E}|)`, edge weights :math:`(|\mathcal{E}|)` *(optional)*
        - **output:** pairs :math:`(2, E)`, weights :math:`(E, K)`
    """
    check_at_least(num_scales, "num_scales", 1)
    if max_neighbors is not None:
        check_at_least(max_neighbors, "max_neighbors", 1)
    if num_nodes is None and batch is not None:
        num_nodes = batch.numel()
    edge_index, edge_weight, num_nodes = as_edge_list(edge_index, edge_weight, num_nodes)
    check_batch(batch, num_nodes, edge_index)
    dtype = torch.get_default_dtype() if edge_weight is None else edge_weight.dtype

    (col, row), weight = edge_index, edge_weight
    weight = torch.ones(row.numel(), dtype=torch.float64, device=row.device) if weight is None else weight.double()
    vertices = torch.arange(num_nodes, device=row.device)
    if add_self_loops:
        row, col = torch.cat([row, vertices]), torch.cat([col, vertices])
        weight = torch.cat([weight, weight.new_ones(num_nodes)])
    present = weight > 0
    row, col, weight = sum_duplicates(row[present], col[present], weight[present], num_nodes)

    log_degree = torch.zeros(num_nodes, dtype=torch.float64, device=row.device)
    transitions = []
    for _ in range(num_scales):
        transition, log_degree = _step(row, col, weight, log_degree)
        transitions.append(transition)
    if max_neighbors is None:
        row, col, field_weight = extend_walks(row, col, torch.stack(transitions), num_nodes, None)
    else:
        followed = strongest(row, transitions[0], max_neighbors)  # the edges that walks may take
        transition = torch.stack(transitions)[:, followed]
        row, col, field_weight = extend_walks(row[followed], col[followed], transition, num_nodes, max_neighbors)
        kept = strongest(row, field_weight.sum(dim=1), max_neighbors)
        row, col, field_weight = row[kept], col[kept], field_weight[kept]
    used = (field_weight > 0).any(dim=1)
    row, col, field_weight = row[used], col[used], field_weight[used]
    # Directed graphs have no bound of 1: the largest finite number keeps infinity, and with it NaN, out of the layers.
    return torch.stack([col, row]), field_weight.clamp(max=torch.finfo(dtype).max).to(dtype)


def _step(row: Tensor, col: Tensor, weight: Tensor, log_degree: Tensor) -> tuple[Tensor, Tensor]:
    """The entries of ``T_k = diag(d_k) A diag(d_{k+1})^-1`` and ``log d_{k+1} = log A d_k`` (in logarithms: no overflow)."""
    log_term = weight.log() + log_degree[col]
    peak = torch.full_like(log_degree, -torch.inf).scatter_reduce(0, row, log_term.detach(), "amax")
    peak = peak.clamp(min=torch.finfo(peak.dtype).min)  # rows without an entry
    total = torch.zeros_like(log_degree).index_add(0, row, (log_term - peak[row]).exp())
    empty = total == 0
    log_next = total.masked_fill(empty, 1).log() + peak
    log_next = log_next.masked_fill(empty, -torch.inf)
    reachable = ~(empty[col] | torch.isinf(log_degree[row]))
    exponent = weight.log() + log_degree[row] - log_next[col]
    return exponent.masked_fill(~reachable, -torch.inf).exp(), log_next
