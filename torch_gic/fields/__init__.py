"""The first stage: from edges to receptive fields."""

from torch_gic.fields.bipartite_fields import bipartite_fields
from torch_gic.fields.edge_fields import edge_fields
from torch_gic.fields.field_parts import split_fields, trim_fields
from torch_gic.fields.fields import AnyFields, Fields
from torch_gic.fields.receptive_fields import receptive_fields
from torch_gic.fields.walk_counts import walk_counts

__all__ = [
    "AnyFields",
    "Fields",
    "bipartite_fields",
    "edge_fields",
    "receptive_fields",
    "split_fields",
    "trim_fields",
    "walk_counts",
]
