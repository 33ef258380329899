"""Soft EM, and the kernel that the paper prints: beside the main way of coarsening."""

from torch_gic.coarsening.soft.affinity import Affinity, cut_affinity, laplacian_affinity
from torch_gic.coarsening.soft.em import soft_em
from torch_gic.coarsening.soft.responsibility import soft_responsibility
from torch_gic.coarsening.soft.select import soft_coarsen

__all__ = ["Affinity", "cut_affinity", "laplacian_affinity", "soft_coarsen", "soft_em", "soft_responsibility"]
