"""Layers, aggregation, pooling and the network."""

from torch_gic.nn.cluster_connect import ClusterConnect
from torch_gic.nn.gaussian_aggregation import GaussianAggregation
from torch_gic.nn.gaussian_mixture import GaussianMixture
from torch_gic.nn.gaussian_readout import GaussianReadout
from torch_gic.nn.gic import GIC
from torch_gic.nn.gic_conv import GICConv
from torch_gic.nn.vigmm_pool import VIGMMPool, VIGMMPoolOutput
from torch_gic.nn.vigmm_select import VIGMMSelect

__all__ = [
    "GIC",
    "ClusterConnect",
    "GICConv",
    "GaussianAggregation",
    "GaussianMixture",
    "GaussianReadout",
    "VIGMMPool",
    "VIGMMPoolOutput",
    "VIGMMSelect",
]
