"""Layers, aggregation, pooling and the network."""

from torch_gic.nn.aggr.gaussian_aggregation import GaussianAggregation
from torch_gic.nn.aggr.gaussian_readout import GaussianReadout
from torch_gic.nn.conv.bounded_norm import BoundedNorm
from torch_gic.nn.conv.gaussian_filter import GaussianFilter
from torch_gic.nn.conv.gaussian_mixture import GaussianMixture
from torch_gic.nn.conv.gic_conv import GICConv
from torch_gic.nn.conv.outlier_clamp import OutlierClamp
from torch_gic.nn.models.gic import GIC
from torch_gic.nn.models.gic_net import GICNet
from torch_gic.nn.pool.cluster_connect import ClusterConnect
from torch_gic.nn.pool.vigmm_pool import VIGMMPool, VIGMMPoolOutput
from torch_gic.nn.pool.vigmm_select import VIGMMSelect

__all__ = [
    "GIC",
    "BoundedNorm",
    "ClusterConnect",
    "GICConv",
    "GICNet",
    "GaussianAggregation",
    "GaussianFilter",
    "GaussianMixture",
    "GaussianReadout",
    "OutlierClamp",
    "VIGMMPool",
    "VIGMMPoolOutput",
    "VIGMMSelect",
]
