"""The operations as Triton kernels for GPUs, behind the same names. Imported when the first tensor on a GPU asks for one."""

from collections.abc import Callable
from typing import Any

from torch_gic.kernels.triton.adjacency_powers import adjacency_powers
from torch_gic.kernels.triton.coarsen import coarsen
from torch_gic.kernels.triton.gaussian_encode import gaussian_encode
from torch_gic.kernels.triton.gaussian_encode_backward import gaussian_encode_backward
from torch_gic.kernels.triton.soft_em import soft_em

KERNELS: dict[str, Callable[..., Any]] = {
    "adjacency_powers": adjacency_powers,
    "coarsen": coarsen,
    "gaussian_encode": gaussian_encode,
    "gaussian_encode_backward": gaussian_encode_backward,
    "soft_em": soft_em,
}
