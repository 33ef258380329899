"""The operations as Triton kernels for GPUs, behind the same names. Imported when the first tensor on a GPU asks for one."""

from collections.abc import Callable
from typing import Any

from torch_gic.triton.adjacency_powers import adjacency_powers
from torch_gic.triton.encode_moments import encode_moments
from torch_gic.triton.encode_moments_backward import encode_moments_backward
from torch_gic.triton.fold_filter import fold_filter, fold_filter_backward
from torch_gic.triton.merge_clusters import merge_clusters
from torch_gic.triton.move_vertices import move_vertices
from torch_gic.triton.vigmm import vigmm

KERNELS: dict[str, Callable[..., Any]] = {
    "adjacency_powers": adjacency_powers,
    "encode_moments": encode_moments,
    "encode_moments_backward": encode_moments_backward,
    "fold_filter": fold_filter,
    "fold_filter_backward": fold_filter_backward,
    "merge_clusters": merge_clusters,
    "move_vertices": move_vertices,
    "vigmm": vigmm,
}
