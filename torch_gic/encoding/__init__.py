"""The second stage: from fields to the Fisher gradients of a Gaussian mixture."""

from torch_gic.encoding.describe import describe
from torch_gic.encoding.field_mean import field_mean
from torch_gic.encoding.gaussian_encode import gaussian_encode
from torch_gic.encoding.normalize import bounded_norm
from torch_gic.encoding.posterior import component_posterior

__all__ = ["bounded_norm", "component_posterior", "describe", "field_mean", "gaussian_encode"]
