"""Says what computes each operation."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass
from pathlib import Path

from torch_gic.kernels.guard import FAILED
from torch_gic.kernels.library import CPU_KERNELS, has_kernel, load_gpu_kernels, load_kernels

# The name of the dispatcher's operator behind each operation.
OPERATORS = {"receptive_fields" if name == "adjacency_powers" else name: name for name in CPU_KERNELS}


@dataclass(frozen=True)
class BackendInfo:
    """What computes each operation, and with which versions; print it for a summary."""

    cpu: str
    library: Path | None
    reason: str | None
    gpu: str
    gpu_reason: str | None
    ops: dict[str, str]
    versions: dict[str, str | None]

    def __str__(self) -> str:
        lines = [f"CPU kernels: {self.cpu}" + (f" ({self.library})" if self.library else "")]
        if self.reason:
            lines.append(f"  because: {self.reason}")
        lines.append(f"GPU kernels: {self.gpu}")
        if self.gpu_reason:
            lines.append(f"  because: {self.gpu_reason}")
        lines += [f"  {name}: {backend}" for name, backend in self.ops.items()]
        lines += [f"{package}: {version or 'not installed'}" for package, version in self.versions.items()]
        return "\n".join(lines)


def backend_info() -> BackendInfo:
    """Says which kernels are active, and if one is not, why.

    Example:
        >>> import torch_gic
        >>> print(torch_gic.backend_info())  # doctest: +ELLIPSIS
        CPU kernels: ...
    """
    kernels, gpu_kernels = load_kernels(), load_gpu_kernels()
    compiled = "C++" if kernels.library else kernels.active
    reference, ops = "PyTorch reference", {}
    failed = {operator for operator, _ in FAILED}
    for name, operator in OPERATORS.items():
        on_cpu = compiled if has_kernel(operator, "CPU") else reference
        on_gpu = "Triton" if has_kernel(operator, "CUDA") and operator not in failed else reference
        ops[name] = reference if on_cpu == on_gpu == reference else f"{on_cpu} on the CPU, {on_gpu} on GPUs"
    reasons = [gpu_kernels.reason] if gpu_kernels.reason else []
    reasons += [f"{operator} failed on {device} ({error})" for (operator, device), error in FAILED.items()]
    packages = ("torch", "torch-geometric", "torch-scatter", "torch-sparse", "triton")
    return BackendInfo(
        kernels.active,
        kernels.library,
        kernels.reason,
        gpu_kernels.active,
        "; ".join(reasons) or None,
        ops,
        {package: _version(package) for package in packages},
    )


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
