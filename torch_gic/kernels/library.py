"""Finds the compiled kernels: the extension built at installation, else one compiled at first use, else none.

Every operation is declared in Python with a plain PyTorch reference; a compiled library only adds faster CPU kernels to
the same names, and Triton kernels for GPUs. So a kernel that is missing is no error: what went wrong is kept, and
:func:`backend_info` tells it.
"""

from __future__ import annotations

import functools
import os
import subprocess
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch.autograd import forward_ad

from torch_gic.kernels.compile import PACKAGE, compiled_library, forget
from torch_gic.kernels.guard import first_line, guarded

OPS = torch.library.Library("torch_gic", "DEF")
F = TypeVar("F", bound=Callable[..., Any])
REFERENCES: dict[str, Callable[..., Any]] = {}
CPU_KERNELS = [  # what a compiled library registers
    "adjacency_powers",
    "bounded_norm",
    "bounded_norm_backward",
    "channel_statistics",
    "outlier_clamp",
    "outlier_clamp_backward",
    "describe",
    "describe_backward",
    "field_mean",
    "field_mean_backward",
    "gaussian_encode",
    "gaussian_encode_backward",
    "coarsen",
    "responsibility",
    "responsibility_backward",
    "soft_em",
    "cluster_max",
    "cluster_max_backward",
    "cluster_edges",
]
CHOICES = ("auto", "no-triton", "reference", "triton")  # of TORCH_GIC_KERNELS


@dataclass(frozen=True)
class Kernels:
    """Which kernels are active, and why not better ones: on the CPU "compiled extension", "compiled at first use", "reference"
    or, for tests, "Triton's interpreter"; on GPUs "Triton" or "reference"."""

    active: str
    library: Path | None = None
    reason: str | None = None


def once(function: Callable[[], Kernels]) -> Callable[[], Kernels]:
    """Whoever calls it at the same time waits for the first one, and all get what it found."""
    cached, lock = functools.cache(function), threading.RLock()

    @functools.wraps(function)
    def call() -> Kernels:
        with lock:
            return cached()

    return call


@once
def load_kernels() -> Kernels:
    """Loads the kernels once; later calls return what the first one found.

    ``TORCH_GIC_KERNELS=reference`` keeps to the references, and ``TORCH_GIC_KERNELS=no-triton`` does so on GPUs alone;
    ``TORCH_GIC_CACHE`` says where compiled kernels are kept.
    ``TORCH_GIC_KERNELS=triton`` runs the GPU kernels on the CPU, in Triton's interpreter: slowly, for tests.
    """
    wanted = _wanted()
    if wanted == "reference":
        return Kernels("reference", reason="TORCH_GIC_KERNELS=reference is set")
    if wanted == "triton":
        if os.environ.get("TRITON_INTERPRET") != "1":
            raise ValueError("Expected TRITON_INTERPRET=1 beside TORCH_GIC_KERNELS=triton: else they run on GPUs only")
        from torch_gic.kernels.triton import KERNELS

        for name, kernel in KERNELS.items():
            OPS.impl(name, kernel, "CPU")
        return Kernels("Triton's interpreter", reason="TORCH_GIC_KERNELS=triton is set")
    reasons = []
    for built in sorted(PACKAGE.glob("_C*.so")):
        try:
            torch.ops.load_library(built)
            return Kernels("compiled extension", built)
        except OSError as error:
            reasons.append(f"{built.name} did not load ({first_line(error)})")
    if not reasons:
        reasons.append("no extension was compiled at installation")
    try:
        library = compiled_library()
        try:
            torch.ops.load_library(library)
        except OSError:  # once more, from the sources
            forget(library)
            library = compiled_library()
            torch.ops.load_library(library)
        if missing := [name for name in CPU_KERNELS if not has_kernel(name, "CPU")]:
            forget(library)
            raise RuntimeError(f"{library.name} lacks {', '.join(missing)}")
        return Kernels("compiled at first use", library, "; ".join(reasons))
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        reasons.append(f"compiling at first use failed ({first_line(error)})")
    reason = "; ".join(reasons)
    warnings.warn(f"torch_gic: no compiled kernels, which makes layers several times slower: {reason}", stacklevel=2)
    return Kernels("reference", reason=reason)


def _wanted() -> str:
    wanted = os.environ.get("TORCH_GIC_KERNELS", "auto")
    if wanted not in CHOICES:
        raise ValueError(f"Expected TORCH_GIC_KERNELS to be one of {CHOICES} (got {wanted!r})")
    return wanted


@once
def load_gpu_kernels() -> Kernels:
    """Registers the Triton kernels, once, for the tensors of CUDA and of ROCm, which calls itself CUDA in PyTorch."""
    if (wanted := _wanted()) in ("reference", "no-triton"):
        return Kernels("reference", reason=f"TORCH_GIC_KERNELS={wanted} is set")
    try:
        from torch_gic.kernels.triton import KERNELS
    except Exception as error:  # absent, or too old or too new for this package: whatever it is, the references run
        return Kernels("reference", reason=f"Triton did not load ({first_line(error)})")
    for name, kernel in KERNELS.items():
        OPS.impl(name, guarded(name, kernel, REFERENCES[name]), "CUDA")
    return Kernels("Triton")


LOADERS = {"cpu": load_kernels, "cuda": load_gpu_kernels}


def register_reference(name: str) -> Callable[[F], F]:
    """Registers a function as the reference, which computes an operation wherever no kernel does.

    The first operation that asks for its reference loads the kernels. So traced layers and exported programs get them, too.
    """

    def register(function: F) -> F:
        @torch.compiler.disable
        def fallback(*arguments: Any) -> Any:
            if sparse := [
                value.layout for value in arguments if isinstance(value, torch.Tensor) and value.layout != torch.strided
            ]:
                raise TypeError(f"Expected dense tensors (got {sparse[0]})")
            device = arguments[0].device.type
            if device in LOADERS:
                LOADERS[device]()
                if has_kernel(name, device.upper()):
                    return getattr(torch.ops.torch_gic, name)(*arguments)
            return function(*arguments)

        REFERENCES[name] = function
        OPS.impl(name, fallback, "CompositeExplicitAutograd")
        return function

    return register


def is_transformed() -> bool:
    """Whether torch.func or forward-mode differentiation is at work. An operation of one's own knows nothing of either: its
    tangents would be zero, without a word. Its reference is differentiable in every way that PyTorch is."""
    if torch.compiler.is_compiling():
        return False
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def has_kernel(name: str, key: str) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(f"torch_gic::{name}", key)
