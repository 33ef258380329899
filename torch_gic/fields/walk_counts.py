"""The normalisers of receptive fields, which cannot be computed from a sample of a graph."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.typing import SparseTensor

from torch_gic._checks import as_edge_list, check_scales

EDGES_PER_PIECE = 1 << 24  # edges are summed in pieces, to save memory on large graphs


def walk_counts(
    edge_index: Tensor | SparseTensor,
    edge_weight: Tensor | None = None,
    *,
    num_nodes: int | None = None,
    num_scales: int = 1,
    add_self_loops: bool = False,
) -> Tensor:
    r"""The normalisers :math:`\mathbf{d}_k = \mathbf{A}^k \mathbf{1}` of :func:`~torch_gic.receptive_fields`: the number of
    walks of :math:`k` steps that end in each node, weighted.

    Compute them once on a graph and store them with its nodes. For a sample of the graph, pass those of its nodes to
    :obj:`receptive_fields(..., walk_count=...)`. The cost is linear in the edges. Numbers are float64: with seven scales, only
    weights beyond :math:`10^{40}` overflow.

    Args:
        edge_index (torch.Tensor or SparseTensor): The edges, in any form PyG accepts.
        edge_weight (torch.Tensor, optional): Their weights, finite and non-negative. (default: ones)
        num_nodes (int, optional): The number of nodes. (default: inferred)
        num_scales (int, optional): The number of scales :math:`K`. (default: :obj:`1`)
        add_self_loops (bool, optional): Whether to add 1 to every :math:`A_{ii}`. (default: :obj:`False`)

    Shapes:
        - **input:** edge indices :math:`(2, |\mathcal{E}|)`, edge weights :math:`(|\mathcal{E}|)` *(optional)*
        - **output:** :math:`(|\mathcal{V}|, K)`

    Example:
        >>> import torch
        >>> from torch_gic import walk_counts
        >>> walk_counts(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_scales=2).tolist()
        [[1.0, 2.0], [2.0, 2.0], [1.0, 2.0]]
    """
    check_scales(num_scales)
    (source, target), edge_weight, num_nodes = as_edge_list(edge_index, edge_weight, num_nodes)
    count = torch.ones(num_nodes, dtype=torch.float64, device=source.device)
    counts = []
    for _ in range(num_scales):
        total = count if add_self_loops else torch.zeros_like(count)
        for start in range(0, source.numel(), EDGES_PER_PIECE):
            piece = slice(start, start + EDGES_PER_PIECE)
            terms = count[source[piece]] if edge_weight is None else count[source[piece]] * edge_weight[piece]
            total = total.index_add(0, target[piece], terms)
        count = total
        counts.append(count)
    return torch.stack(counts, dim=1)
