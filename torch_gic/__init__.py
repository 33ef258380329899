"""Gaussian-induced convolution for graphs, as an extension of PyTorch Geometric."""

from torch_gic._version import __version__
from torch_gic.coarsening import cluster
from torch_gic.fields import Fields, receptive_fields, walk_counts
from torch_gic.kernels.backend import backend_info
from torch_gic.nn import GIC, GaussianAggregation, GICConv, GICNet, VIGMMPool
from torch_gic.transforms import Cluster, PreCoarsen, ReceptiveFields

__all__ = [
    "GIC",
    "Cluster",
    "Fields",
    "GICConv",
    "GICNet",
    "GaussianAggregation",
    "PreCoarsen",
    "ReceptiveFields",
    "VIGMMPool",
    "__version__",
    "backend_info",
    "cluster",
    "receptive_fields",
    "walk_counts",
]
