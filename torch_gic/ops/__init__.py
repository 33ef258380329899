"""The operations, each once in plain PyTorch: the reference that compiled kernels are tested against."""

from torch_gic.ops.encode_moments import encode_moments
from torch_gic.ops.gaussian_encode import component_posterior, gaussian_encode
from torch_gic.ops.gaussian_filter import gaussian_filter
from torch_gic.ops.receptive_fields import receptive_fields
from torch_gic.ops.seed_clusters import seed_clusters
from torch_gic.ops.vertex_kernels import VertexKernel, cut_kernel, laplacian_kernel, undirected_adjacency, vertex_volume
from torch_gic.ops.vigmm import vigmm
from torch_gic.ops.vigmm_select import vigmm_select

# The name of the dispatcher's operator behind each.
OP_NAMES = {
    "receptive_fields": "adjacency_powers",
    "gaussian_filter": "encode_moments",
    "seed_clusters": "seed_clusters",
    "vigmm_select": "vigmm_select",
}

__all__ = [
    "OP_NAMES",
    "VertexKernel",
    "component_posterior",
    "cut_kernel",
    "encode_moments",
    "gaussian_encode",
    "gaussian_filter",
    "laplacian_kernel",
    "receptive_fields",
    "seed_clusters",
    "undirected_adjacency",
    "vertex_volume",
    "vigmm",
    "vigmm_select",
]
