"""A layer that sees a graph by its receptive fields: computes them, or checks given ones."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.typing import PairTensor, SparseTensor
from torch_geometric.utils import is_sparse

from torch_gic._checks import check_at_least, check_features
from torch_gic.fields import AnyFields, Fields, bipartite_fields, edge_fields, receptive_fields
from torch_gic.fields.fields import EDGES_AS_MEMBERS
from torch_gic.nn.conv.explain import ExplainableConv
from torch_gic.nn.conv.projection import Edges


class FieldConv(ExplainableConv):
    """Computes receptive fields with the settings of the layer, or checks given ones.

    Args:
        num_scales (int): The number of scales.
        add_self_loops (bool): Whether each node is in its own field.
        max_neighbors (int, optional): The largest number of field members per node.
        edge_dim (int, optional): Size of each edge feature vector. With it, edges are the members of fields.
    """

    def __init__(self, num_scales: int, add_self_loops: bool, max_neighbors: int | None, edge_dim: int | None) -> None:
        super().__init__(aggr=None)
        check_at_least(num_scales, "num_scales", 1)
        if max_neighbors is not None:
            check_at_least(max_neighbors, "max_neighbors", 1)
        if edge_dim is not None:
            check_at_least(edge_dim, "edge_dim", 1)
            if num_scales != 1 or add_self_loops or max_neighbors is not None:
                raise ValueError(
                    "Expected num_scales=1, add_self_loops=False and max_neighbors=None with 'edge_dim', since the members"
                    f" of fields are edges (got {Fields.settings_of(num_scales, add_self_loops, max_neighbors)})"
                )
        self.num_scales = num_scales
        self.add_self_loops = add_self_loops
        self.max_neighbors = max_neighbors
        self.edge_dim = edge_dim

    def fields(
        self,
        x: Tensor | PairTensor,
        edge_index: Tensor | SparseTensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Fields:
        """Computes the receptive fields with the settings of this layer. Pass them to ``forward`` as ``fields``."""
        source, target = as_pair(x)
        if self.flow != "source_to_target":
            raise ValueError(f"Expected 'flow' to be 'source_to_target' (got {self.flow!r}); flip the edges instead")
        edge_weight = self.masked_weight(edge_index, edge_weight)
        bipartite, size = source is not target, (source.size(0), target.size(0))
        if self.edge_dim is not None:
            if is_sparse(edge_index):
                raise ValueError(
                    "Expected 'edge_index' to be a tensor of shape [2, num_edges] with 'edge_dim' (got a sparse one)"
                )
            return edge_fields(edge_index, edge_weight, size=size if bipartite else size[0], batch=batch)
        if bipartite:
            if self.num_scales != 1:
                raise ValueError(
                    "Expected 'num_scales' to be 1 for a pair (x_src, x_dst), since walks of several steps need edges among"
                    f" all nodes (got {self.num_scales}); or pass 'fields'"
                )
            if self.add_self_loops:
                raise ValueError(
                    "Expected 'add_self_loops' to be False for a pair (x_src, x_dst), whose targets are no sources (got True)"
                )
            return bipartite_fields(edge_index, edge_weight, size=size)
        return receptive_fields(
            edge_index,
            edge_weight,
            num_nodes=source.size(0),
            batch=batch,
            num_scales=self.num_scales,
            add_self_loops=self.add_self_loops,
            max_neighbors=self.max_neighbors,
        )

    def checked(
        self,
        fields: AnyFields,
        x: Tensor | PairTensor,
        edge_index: Tensor | SparseTensor | None,
    ) -> Fields:
        """The fields as an object. Raises an error if they are of another graph, or made with other settings."""
        if self.explain and self._edge_mask is not None:
            raise ValueError("Expected no 'fields' for a layer that is explained: they were made without the edge mask")
        source, target = as_pair(x)
        edges = None if edge_index is None or is_sparse(edge_index) else edge_index
        size = source.size(0), target.size(0)
        settings = Fields.settings_of(self.num_scales, self.add_self_loops, self.max_neighbors)
        if self.edge_dim is not None:
            if edges is None:
                raise ValueError("Expected 'edge_index' to be a tensor of shape [2, num_edges] with 'edge_dim' (got none)")
            size, settings = (edges.size(1), target.size(0)), EDGES_AS_MEMBERS
        fields = Fields.of(fields, size)
        fields.check(*size, edges, self.num_scales, settings)
        return fields

    def edges(self, edge_index: Tensor | SparseTensor | None, edge_attr: Tensor | None) -> Edges | None:
        """The edges with their features, if the layer has ``edge_dim``."""
        if self.edge_dim is None:
            if edge_attr is not None:
                raise ValueError(
                    "Expected no 'edge_attr' for a layer without 'edge_dim' (got some); pass edge_dim= to the layer"
                )
            return None
        if not isinstance(edge_index, Tensor) or is_sparse(edge_index):
            raise ValueError("Expected 'edge_index' to be a tensor of shape [2, num_edges] with 'edge_dim' (got another type)")
        if edge_attr is None:
            raise ValueError(f"Expected 'edge_attr' of shape [{edge_index.size(1)}, {self.edge_dim}] (got None)")
        if isinstance(edge_attr, Tensor) and edge_attr.dim() == 1:
            edge_attr = edge_attr.unsqueeze(1)
        check_features(edge_attr, self.edge_dim, name="edge_attr")
        if edge_attr.size(0) != edge_index.size(1):
            raise ValueError(f"Expected 'edge_attr' to have {edge_index.size(1)} rows, one per edge (got {edge_attr.size(0)})")
        return Edges(edge_index[0], edge_attr)


def as_pair(x: Tensor | PairTensor) -> PairTensor:
    """The features of sources and targets. They are the same object unless the graph is bipartite."""
    if not isinstance(x, tuple | list):
        return x, x
    if len(x) != 2 or not all(isinstance(part, Tensor) for part in x):
        kinds = ", ".join(type(part).__name__ for part in x)
        raise TypeError(f"Expected 'x' to be a tensor or a pair of tensors (x_src, x_dst) (got ({kinds}))")
    return x[0], x[1]
