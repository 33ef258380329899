"""The operations as Triton kernels for GPUs, behind the same names. Imported when the first tensor on a GPU asks for one."""

from collections.abc import Callable
from typing import Any

from torch_gic.kernels.triton.adjacency_powers import adjacency_powers
from torch_gic.kernels.triton.gaussian_encode import gaussian_encode
from torch_gic.kernels.triton.gaussian_encode_backward import gaussian_encode_backward

KERNELS: dict[str, Callable[..., Any]] = {
    "adjacency_powers": adjacency_powers,
    "gaussian_encode": gaussian_encode,
    "gaussian_encode_backward": gaussian_encode_backward,
}
