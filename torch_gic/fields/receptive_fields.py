"""Multi-scale receptive fields: the normalised powers of the adjacency, on one shared list of pairs."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.typing import SparseTensor

from torch_gic._checks import as_edge_list, check_at_least, check_batch, check_scales
from torch_gic.fields.adjacency_powers import adjacency_powers
from torch_gic.fields.fields import Fields, pointers


def receptive_fields(
    edge_index: Tensor | SparseTensor,
    edge_weight: Tensor | None = None,
    *,
    num_nodes: int | None = None,
    batch: Tensor | None = None,
    num_scales: int = 1,
    add_self_loops: bool = False,
    max_neighbors: int | None = None,
    walk_count: Tensor | None = None,
) -> Fields:
    r"""Computes the multi-scale receptive fields of every node, as in Definition 2 of the
    `"Gaussian-Induced Convolution for Graphs" <https://arxiv.org/abs/1811.04393>`_ paper

    .. math::
        \tilde{\mathbf{A}}_k = \mathbf{A}^k \, \mathrm{diag}(\mathbf{A}^k \mathbf{1})^{-1}, \qquad k = 1, \ldots, K,

    where :math:`A_{ij}` is the weight of the edge from :math:`j` to :math:`i`. Parallel edges add up. All scales share
    one list of pairs. A weight of zero means that the pair is not in the field of that scale.

    No power is formed. The matrices come from the recursion
    :math:`\tilde{\mathbf{A}}_k = \tilde{\mathbf{A}}_{k-1} \mathbf{T}_k` with
    :math:`\mathbf{T}_k = \mathrm{diag}(\mathbf{d}_{k-1}) \, \mathbf{A} \, \mathrm{diag}(\mathbf{d}_k)^{-1}` and
    :math:`\mathbf{d}_k = \mathbf{A}^k \mathbf{1}`. On an undirected graph all its numbers lie in :math:`[0, 1]`, however
    large the weights are. On a directed graph, 1 stands for :math:`d_{kj}` where no walk of :math:`k` steps ends in
    :math:`j`. The recursion runs in float64 and is differentiable in :obj:`edge_weight`.

    Args:
        edge_index (torch.Tensor or SparseTensor): The edges, in any form PyG accepts.
        edge_weight (torch.Tensor, optional): Their weights, finite and non-negative. (default: ones)
        num_nodes (int, optional): The number of nodes. (default: inferred)
        batch (torch.Tensor, optional): The graph of each node. An edge between graphs is then an error.
            (default: :obj:`None`)
        num_scales (int, optional): The number of scales :math:`K`. (default: :obj:`1`)
        add_self_loops (bool, optional): Whether to add 1 to every :math:`A_{ii}`, so that each node is in its own field, as in
            the paper. (default: :obj:`False`)
        max_neighbors (int, optional): The largest number of pairs per node. Those of the largest weight, summed over the
            scales, are kept. Walks then follow only as many edges from each node, the heaviest, and keep as many ends
            after every step, so the cost is linear in what is kept. The normalisers :math:`d_k` stay those of the full
            graph. So a kept weight is never above the exact one, and equals it where no walk was cut. Ties go to the
            lower node number. (default: :obj:`None`)
        walk_count (torch.Tensor, optional): The normalisers :math:`d_k` of each node in each scale. For a sample of a larger
            graph, pass those of that graph (:func:`~torch_gic.walk_counts`). Otherwise a node whose edges were not sampled
            counts as one without edges, and its weight is far too large. (default: computed)

    Returns:
        The :class:`~torch_gic.Fields`. Their ``index`` holds neighbours :math:`j` in row 0 and nodes :math:`i` in row 1,
        sorted by :math:`i`, then :math:`j`. Their ``weight`` holds :math:`(\tilde{A}_k)_{ij}`.

    Shapes:
        - **input:** edge indices :math:`(2, |\mathcal{E}|)`, edge weights :math:`(|\mathcal{E}|)` *(optional)*,
          normalisers :math:`(|\mathcal{V}|, K)` *(optional)*
        - **output:** pairs :math:`(2, E)`, weights :math:`(E, K)`

    Example:
        >>> import torch
        >>> from torch_gic import receptive_fields
        >>> edge = torch.tensor([[0, 1], [1, 0]])
        >>> fields = receptive_fields(edge, num_scales=2)
        >>> fields.index.tolist()
        [[0, 1, 0, 1], [0, 0, 1, 1]]
        >>> fields.weight.tolist()  # one step leads to the other node, two lead back
        [[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    """
    check_scales(num_scales)
    if max_neighbors is not None:
        check_at_least(max_neighbors, "max_neighbors", 1)
    if num_nodes is None and batch is not None:
        num_nodes = batch.numel()
    edge_index, edge_weight, num_nodes = as_edge_list(edge_index, edge_weight, num_nodes)
    check_batch(batch, num_nodes, edge_index)
    if walk_count is not None and tuple(walk_count.shape) != (num_nodes, num_scales):
        shape = list(walk_count.shape)
        raise ValueError(f"Expected 'walk_count' to have shape [{num_nodes}, {num_scales}] (got {shape})")
    compiling = torch.compiler.is_compiling()  # then nothing can look at values
    if walk_count is not None and not compiling and not bool((torch.isfinite(walk_count) & (walk_count >= 0)).all()):
        raise ValueError("Expected 'walk_count' to be finite and non-negative (got other values)")
    dtype = torch.get_default_dtype() if edge_weight is None else edge_weight.dtype

    (col, row), weight = edge_index, edge_weight
    weight = torch.ones(row.numel(), dtype=dtype, device=row.device) if weight is None else weight
    if dtype != torch.float64:
        weight = weight.float()
    if add_self_loops:
        nodes = torch.arange(num_nodes, device=row.device)
        row, col = torch.cat([row, nodes]), torch.cat([col, nodes])
        weight = torch.cat([weight, weight.new_ones(num_nodes)])
    degree = None if walk_count is None else walk_count.double()
    field_index, field_weight = adjacency_powers(row, col, weight, num_nodes, num_scales, max_neighbors, degree)
    if field_weight.dtype != dtype:  # half precision
        field_weight = field_weight.clamp(max=torch.finfo(dtype).max).to(dtype)
    settings = Fields.settings_of(num_scales, add_self_loops, max_neighbors)
    return Fields(field_index, field_weight, pointers(field_index[1], num_nodes), num_nodes, edge_index, settings)
