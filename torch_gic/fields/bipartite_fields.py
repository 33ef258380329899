"""Receptive fields between two sets of nodes: the sources that each target sees."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.typing import SparseTensor
from torch_geometric.utils import is_sparse

from torch_gic._checks import as_edge_list, entries_of
from torch_gic.fields.adjacency_powers import adjacency_powers
from torch_gic.fields.fields import Fields, pointers


def bipartite_fields(edge_index: Tensor | SparseTensor, edge_weight: Tensor | None = None, *, size: tuple[int, int]) -> Fields:
    r"""The receptive fields of the targets of a bipartite graph

    .. math::
        \tilde{A}_{ij} = \frac{A_{ij}}{\sum_{i'} A_{i'j}},

    where :math:`A_{ij}` is the weight of the edge from source :math:`j` to target :math:`i`: the first scale of
    :func:`~torch_gic.receptive_fields` on the undirected graph of both sets. There are no further scales, since no walk
    goes on from a target. Parallel edges add up.

    Args:
        edge_index (torch.Tensor or SparseTensor): The edges, from sources (row 0) to targets (row 1), or a sparse matrix of
            shape ``[num_targets, num_sources]``.
        edge_weight (torch.Tensor, optional): Their weights, finite and non-negative. (default: ones)
        size (tuple): The number of sources and of targets.

    Shapes:
        - **input:** edge indices :math:`(2, |\mathcal{E}|)`, edge weights :math:`(|\mathcal{E}|)` *(optional)*
        - **output:** pairs :math:`(2, E)`, sorted by target, then source; weights :math:`(E, 1)`
    """
    if is_sparse(edge_index):
        if (edge_index.size(1), edge_index.size(0)) != size:
            raise ValueError(
                f"Expected 'edge_index' to have shape [num_targets, num_sources] = {[size[1], size[0]]}"
                f" (got {[edge_index.size(0), edge_index.size(1)]})"
            )
        if edge_weight is not None:
            raise ValueError("Expected 'edge_weight' to be None when 'edge_index' is a sparse matrix, which holds them")
        edge_index, edge_weight = entries_of(edge_index)
    edge_index, edge_weight, _ = as_edge_list(edge_index, edge_weight, max(size))
    check_ends(edge_index, size)
    source, target = edge_index
    weight = torch.ones(source.numel(), device=source.device) if edge_weight is None else edge_weight
    exact = weight if weight.dtype == torch.float64 else weight.float()
    leaving = torch.zeros(max(size), dtype=torch.float64, device=source.device).index_add(0, source, weight.double())
    index, shares = adjacency_powers(target, source, exact, max(size), 1, None, leaving.unsqueeze(1))
    settings = Fields.settings_of(1, False, None)
    return Fields(index, shares.to(weight.dtype), pointers(index[1], size[1]), size[0], edge_index, settings)


def check_ends(edge_index: Tensor, size: tuple[int, int]) -> None:
    """Checks that edges lead from existing sources to existing targets. ``size`` has the numbers of both."""
    if torch.compiler.is_compiling():  # a traced model cannot look at values
        return
    for name, nodes, count in zip(("sources", "targets"), edge_index, size, strict=True):
        if nodes.numel() > 0 and int(nodes.max()) >= count:
            raise ValueError(f"Expected the {name} in 'edge_index' to be below {count} (got {int(nodes.max())})")
