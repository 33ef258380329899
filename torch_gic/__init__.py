"""Gaussian-induced convolution for graphs, as an extension of PyTorch Geometric."""

from torch_gic._library import backend_info
from torch_gic.nn import GIC, GaussianAggregation, GICConv, VIGMMPool
from torch_gic.ops import receptive_fields
from torch_gic.transforms import ReceptiveFields

__version__ = "0.1.0"

__all__ = [
    "GIC",
    "GICConv",
    "GaussianAggregation",
    "ReceptiveFields",
    "VIGMMPool",
    "__version__",
    "backend_info",
    "receptive_fields",
]
