"""The operations, each once in plain PyTorch: the reference that compiled kernels are tested against."""

from torch_gic.ops.bipartite_fields import bipartite_fields
from torch_gic.ops.encode_moments import encode_moments
from torch_gic.ops.field_parts import split_fields, trim_fields
from torch_gic.ops.fold_filter import fold_filter
from torch_gic.ops.gaussian_encode import component_posterior, gaussian_encode
from torch_gic.ops.gaussian_filter import gaussian_filter
from torch_gic.ops.merge_clusters import merge_clusters
from torch_gic.ops.move_vertices import move_vertices
from torch_gic.ops.receptive_fields import receptive_fields
from torch_gic.ops.responsibility import responsibility
from torch_gic.ops.structural_rank import structural_rank
from torch_gic.ops.undirected_graph import UndirectedGraph, undirected_graph, vertex_volume
from torch_gic.ops.vertex_kernels import VertexKernel, cut_kernel, laplacian_kernel
from torch_gic.ops.vigmm import vigmm
from torch_gic.ops.vigmm_select import vigmm_select
from torch_gic.ops.walk_counts import walk_counts

__all__ = [
    "UndirectedGraph",
    "VertexKernel",
    "bipartite_fields",
    "component_posterior",
    "cut_kernel",
    "encode_moments",
    "fold_filter",
    "gaussian_encode",
    "gaussian_filter",
    "laplacian_kernel",
    "merge_clusters",
    "move_vertices",
    "receptive_fields",
    "responsibility",
    "split_fields",
    "structural_rank",
    "trim_fields",
    "undirected_graph",
    "vertex_volume",
    "vigmm",
    "vigmm_select",
    "walk_counts",
]
