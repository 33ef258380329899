"""Receptive fields whose members are edges, for layers with edge features."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from torch_gic._checks import as_edge_list, check_batch
from torch_gic.fields.adjacency_powers import adjacency_powers
from torch_gic.fields.bipartite_fields import check_ends
from torch_gic.fields.fields import EDGES_AS_MEMBERS, Fields, pointers


def edge_fields(
    edge_index: Tensor,
    edge_weight: Tensor | None = None,
    *,
    size: int | tuple[int, int],
    batch: Tensor | None = None,
) -> Fields:
    r"""Computes receptive fields whose members are edges: the field of a node holds the edges that lead to it

    .. math::
        a_{ie} = \frac{A_e}{d_{j(e)}} \quad \text{for each edge } e \text{ from node } j(e) \text{ to node } i.

    :math:`A_e` is the weight of the edge. :math:`d_j` is what :func:`~torch_gic.receptive_fields` divides by or, between two
    sets of nodes, :func:`~torch_gic.fields.bipartite_fields`. Parallel edges together weigh as much as their pair does there.

    Args:
        edge_index (torch.Tensor): The edges, from sources (row 0) to targets (row 1).
        edge_weight (torch.Tensor, optional): Their weights, finite and non-negative. (default: ones)
        size (int or tuple): The number of nodes or, of a bipartite graph, that of sources and that of targets.
        batch (torch.Tensor, optional): The graph of each node. An edge between graphs is then an error.
            (default: :obj:`None`)

    Shapes:
        - **input:** edge indices :math:`(2, |\mathcal{E}|)`, edge weights :math:`(|\mathcal{E}|)` *(optional)*
        - **output:** pairs of edge and node :math:`(2, E)`, sorted by node, then edge; weights :math:`(E, 1)`
    """
    sources, targets = size if isinstance(size, tuple) else (size, size)
    edge_index, edge_weight, _ = as_edge_list(edge_index, edge_weight, max(sources, targets))
    if isinstance(size, tuple):
        check_ends(edge_index, size)  # of nodes of one graph, all was checked above
    check_batch(batch, targets, edge_index)
    source, target = edge_index
    weight = torch.ones(source.numel(), device=source.device) if edge_weight is None else edge_weight
    exact = weight if weight.dtype == torch.float64 else weight.float()
    # As in receptive_fields: the sum of a row of the adjacency matrix, over the edges that lead to a node.
    end = source if isinstance(size, tuple) else target
    degree = torch.zeros(sources, dtype=torch.float64, device=source.device).index_add(0, end, weight.double())
    count = source.numel() + targets  # at least the number of rows, and that of columns
    degree = torch.nn.functional.pad(degree.index_select(0, source), (0, targets))
    edge = torch.arange(source.numel(), device=source.device)
    index, shares = adjacency_powers(target, edge, exact, count, 1, None, degree.unsqueeze(1))
    return Fields(index, shares.to(weight.dtype), pointers(index[1], targets), source.numel(), edge_index, EDGES_AS_MEMBERS)


def fields_of_sources(fields: Fields, source: Tensor, num_sources: int) -> Fields:
    """Replaces each edge by its source: fields whose members are nodes."""
    index = torch.stack([source.index_select(0, fields.index[0]), fields.index[1]])
    return replace(fields, index=index, num_sources=num_sources)
