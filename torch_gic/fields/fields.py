"""Receptive fields as one object: sorted entries, their pointers, and the settings they were made with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

DICT_KEYS = ("index", "weight", "count", "edge_index", "settings")
EDGES_AS_MEMBERS = "edges as members"  # the settings of edge_fields


@dataclass(frozen=True, eq=False)
class Fields:
    r"""The receptive fields of all nodes and scales, made once by :func:`~torch_gic.receptive_fields`.

    All layers with the same settings can share them. A layer refuses fields of another graph, and fields made with settings
    other than its own.

    An entry says that node :math:`j` is in the field of node :math:`i`. The entries of node :math:`i` are those from
    ``rowptr[i]`` up to ``rowptr[i + 1]``.

    In a :class:`~torch_geometric.data.Data` object, fields are a dictionary (:meth:`to_dict`). PyG's loaders join such
    dictionaries, and every layer takes them as :obj:`fields=data.fields`.

    Args:
        index (torch.Tensor): Row 0 the member :math:`j`, row 1 the node :math:`i` of each entry, sorted by node.
        weight (torch.Tensor): The weight :math:`a_{ijk}` of each entry in each scale. Zero means: not in the field.
        rowptr (torch.Tensor): Where the entries of each node begin.
        num_sources (int): The number of nodes that may be members: all nodes, or the sources of a bipartite graph.
        edge_index (torch.Tensor, optional): The edges of the graph, if known. (default: :obj:`None`)
        settings (str, optional): The settings that the fields were made with, if known. (default: :obj:`None`)

    Shapes:
        - **input:** entries :math:`(2, E)`, weights :math:`(E, K)`, pointers :math:`(N + 1)`

    Example:
        >>> import torch
        >>> from torch_gic import receptive_fields
        >>> receptive_fields(torch.tensor([[0, 1], [1, 0]]), num_scales=2)
        Fields(num_nodes=2, num_entries=4, num_scales=2, add_self_loops=False, max_neighbors=None)
    """

    index: Tensor
    weight: Tensor
    rowptr: Tensor
    num_sources: int
    edge_index: Tensor | None = None
    settings: str | None = None

    @property
    def num_nodes(self) -> int:
        """The number of nodes that have a field."""
        return self.rowptr.numel() - 1

    @property
    def num_scales(self) -> int:
        return self.weight.size(1)

    @staticmethod
    def settings_of(num_scales: int, add_self_loops: bool, max_neighbors: int | None) -> str:
        return f"num_scales={num_scales}, add_self_loops={add_self_loops}, max_neighbors={max_neighbors}"

    @classmethod
    def of(cls, given: Any, size: tuple[int, int]) -> Fields:
        """Converts what a layer takes as ``fields``: the object itself, its dictionary, or a pair of tensors."""
        if isinstance(given, Mapping):
            return cls.from_dict(given)
        if isinstance(given, tuple | list) and len(given) == 2:
            return cls.from_pair(given[0], given[1], size)
        if not isinstance(given, cls):
            expected = "Fields, data.fields or a pair (index, weight)"
            raise TypeError(f"Expected 'fields' to be {expected} (got {type(given).__name__})")
        return given

    @classmethod
    def from_pair(cls, index: Any, weight: Any, size: tuple[int, int]) -> Fields:
        """Makes fields from plain tensors in any order: checks them, and sorts them by node.

        ``size`` is the number of sources and of nodes.
        """
        if not isinstance(index, Tensor) or not isinstance(weight, Tensor):
            kinds = f"{type(index).__name__}, {type(weight).__name__}"
            raise TypeError(f"Expected 'fields' to be a pair of tensors (index, weight) (got {kinds})")
        if index.dim() != 2 or index.size(0) != 2 or index.dtype != torch.int64:
            shape = list(index.shape)
            raise ValueError(
                f"Expected the index of 'fields' to hold int64 in shape [2, num_entries] (got {index.dtype}, {shape})"
            )
        if weight.dim() != 2 or weight.size(0) != index.size(1) or not weight.is_floating_point():
            expected, found = f"[{index.size(1)}, num_scales]", f"{weight.dtype}, {list(weight.shape)}"
            raise ValueError(f"Expected the weight of 'fields' to be floating point in shape {expected} (got {found})")
        if index.size(1) > 0 and not torch.compiler.is_compiling():  # a traced model cannot look at values
            lowest, highest = (value.tolist() for value in index.aminmax(dim=1))
            for row, count in enumerate(size):
                if lowest[row] < 0 or highest[row] >= count:
                    raise ValueError(
                        f"Expected row {row} of the index of 'fields' to lie in [0, {count - 1}] (got {lowest[row]} to"
                        f" {highest[row]}); are these the fields of this graph?"
                    )
            if not bool((torch.isfinite(weight) & (weight >= 0)).all()):
                raise ValueError("Expected the weight of 'fields' to be finite and non-negative (got other values)")
        node, order = index[1].sort(stable=True)
        index, weight = torch.stack([index[0][order], node]), weight[order]
        return cls(index, weight, pointers(node, size[1]), size[0])

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Fields:
        """Makes fields from the dictionary of :meth:`to_dict`, also after a loader has joined several."""
        if set(fields) != set(DICT_KEYS):
            raise ValueError(f"Expected 'fields' to have the keys {DICT_KEYS} of Fields.to_dict (got {tuple(fields)})")
        count, settings = fields["count"], fields["settings"]
        settings = {settings} if isinstance(settings, str) else set(settings)
        if len(settings) > 1:
            raise ValueError(
                f"Expected the 'fields' of all graphs to have the same settings (got {' and '.join(sorted(settings))})"
            )
        rowptr = torch.nn.functional.pad(count.cumsum(0), (1, 0))
        edge_index = fields["edge_index"]
        return cls(fields["index"], fields["weight"], rowptr, count.numel(), edge_index, next(iter(settings), None))

    def to_dict(self) -> dict[str, Any]:
        """Makes a dictionary that PyG's loaders can join. It has the number of entries per node in place of pointers."""
        if self.edge_index is None or self.settings is None:
            raise ValueError("Expected fields made by 'receptive_fields' or 'bipartite_fields' (got those of plain tensors)")
        if self.settings == EDGES_AS_MEMBERS:
            raise ValueError("Expected fields of nodes, which loaders can join (got edges as members); leave them out")
        values = (self.index, self.weight, self.rowptr.diff(), self.edge_index, self.settings)
        return dict(zip(DICT_KEYS, values, strict=True))

    def to(self, *args: Any, **kwargs: Any) -> Fields:
        """Moves all tensors to another device."""
        index, weight, rowptr = (value.to(*args, **kwargs) for value in (self.index, self.weight, self.rowptr))
        edge_index = None if self.edge_index is None else self.edge_index.to(*args, **kwargs)
        return replace(self, index=index, weight=weight, rowptr=rowptr, edge_index=edge_index)

    def check(self, num_sources: int, num_nodes: int, edge_index: Tensor | None, num_scales: int, settings: str) -> None:
        """Raises an error if the fields are of another graph, or if the layer has other settings.

        Compares values only if ``edge_index`` is not the tensor that the fields were made of.
        """
        if (self.num_sources, self.num_nodes) != (num_sources, num_nodes):
            expected = f"{num_nodes} nodes" if num_sources == num_nodes else f"{num_sources} sources and {num_nodes} nodes"
            raise ValueError(
                f"Expected the 'fields' of a graph of {expected} (got those of {self.num_sources} and {self.num_nodes}); are"
                " these the fields of this graph? A sampled or cut out part of a graph needs fields of its own"
            )
        if self.edge_index is not None and edge_index is not None and edge_index is not self.edge_index:
            if self.edge_index.size(1) != edge_index.size(1):
                raise ValueError(
                    f"Expected the 'fields' of a graph of {edge_index.size(1)} edges (got those of {self.edge_index.size(1)}"
                    " edges); are these the fields of this graph?"
                )
            # A traced model cannot look at values.
            if not torch.compiler.is_compiling() and not torch.equal(self.edge_index, edge_index):
                raise ValueError(
                    "Expected the 'fields' of this graph (got those of other edges, or of edges in another order); make them"
                    " after the last transform that changes 'edge_index'"
                )
        if self.num_scales != num_scales:
            raise ValueError(f"Expected 'fields' of num_scales={num_scales}, as of this layer (got {self.num_scales})")
        if self.settings is not None and self.settings != settings:
            raise ValueError(f"Expected 'fields' made with {settings}, as this layer's (got {self.settings})")

    def __repr__(self) -> str:
        settings = self.settings or f"num_scales={self.num_scales}"
        return f"{type(self).__name__}(num_nodes={self.num_nodes}, num_entries={self.index.size(1)}, {settings})"


def pointers(node: Tensor, num_nodes: int) -> Tensor:
    """Where the entries of each node begin, in a sorted list of nodes."""
    return torch.searchsorted(node.contiguous(), torch.arange(num_nodes + 1, device=node.device))


AnyFields = Fields | Mapping[str, Any] | tuple[Tensor, Tensor]  # what layers take as `fields`
