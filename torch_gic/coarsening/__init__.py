"""The third stage: from a graph to the clusters of a smaller one."""

from torch_gic.coarsening.cluster import cluster
from torch_gic.coarsening.fill_clusters import fill_clusters
from torch_gic.coarsening.merge_clusters import merge_clusters
from torch_gic.coarsening.move_vertices import move_vertices
from torch_gic.coarsening.responsibility import responsibility
from torch_gic.coarsening.structural_rank import structural_rank
from torch_gic.coarsening.undirected_graph import UndirectedGraph, undirected_graph, vertex_volume
from torch_gic.coarsening.vertex_kernels import VertexKernel, cut_kernel, laplacian_kernel
from torch_gic.coarsening.vigmm import vigmm
from torch_gic.coarsening.vigmm_select import vigmm_select

__all__ = [
    "UndirectedGraph",
    "VertexKernel",
    "cluster",
    "cut_kernel",
    "fill_clusters",
    "laplacian_kernel",
    "merge_clusters",
    "move_vertices",
    "responsibility",
    "structural_rank",
    "undirected_graph",
    "vertex_volume",
    "vigmm",
    "vigmm_select",
]
