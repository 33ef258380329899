"""Uses a GPU kernel only while it is right: it gives way to its reference when it differs from it, or does not run."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any

import torch
from torch import Tensor

from torch_gic.kernels.self_check import mismatch

# What a driver says of a program that does not fit its device. All else it says, such as of illegal memory accesses, means
# that the device holds wrong numbers from then on, and is no reason to go on.
UNFIT = ("kernel image", "PTX", "too many resources", "invalid device function")
FAILED: dict[tuple[str, torch.device], str] = {}  # why an operation runs as reference
_checked: set[tuple[str, torch.device, torch.dtype]] = set()
_lock = threading.RLock()


def guarded(name: str, kernel: Callable[..., Any], reference: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel of an operation while it can be trusted, then the reference, for good.

    Before its first use on a device, and in a type, its results are compared with those of the reference on a small input.
    """

    @torch.compiler.disable
    def run(*arguments: Any) -> Any:
        device = arguments[0].device
        if (name, device) not in FAILED and _is_right(name, kernel, reference, arguments[0]):
            try:
                return kernel(*arguments)
            except Exception as error:
                if not is_tritons(error):
                    raise
                _give_up(name, device, first_line(error))
        return reference(*arguments)

    return run


def _is_right(name: str, kernel: Callable[..., Any], reference: Callable[..., Any], first: Tensor) -> bool:
    device, dtype = first.device, first.dtype if first.is_floating_point() else torch.float32
    key = name, device, dtype
    if key in _checked or (first.is_cuda and torch.cuda.is_current_stream_capturing()):  # then nothing can be looked at
        return True
    with _lock:
        if key not in _checked and (name, device) not in FAILED:
            try:
                reason = mismatch(name, kernel, reference, device, dtype)
                reason = reason and f"it differs from its reference: {reason}"
            except Exception as error:
                if not is_tritons(error):
                    raise
                reason = first_line(error)
            if reason is None:
                _checked.add(key)
            else:
                _give_up(name, device, reason)
    return (name, device) not in FAILED


def _give_up(name: str, device: torch.device, reason: str) -> None:
    FAILED[name, device] = reason
    warnings.warn(
        f"torch_gic: '{name}' runs as reference on {device}, which is slower: Triton failed ({reason})", stacklevel=4
    )


def is_tritons(error: BaseException) -> bool:
    """Whether Triton could not compile or start a kernel: by its type, or because it was raised in Triton's own code."""
    from triton.errors import TritonError

    if isinstance(error, TritonError):
        return True
    if isinstance(error, torch.AcceleratorError | torch.OutOfMemoryError):  # of the device, and of memory that others hold
        return False
    message = str(error)
    if message.startswith("Triton Error ["):  # what the driver says
        return any(reason in message for reason in UNFIT)
    return _raised_in(error.__traceback__).partition(".")[0] == "triton"


def _raised_in(traceback: TracebackType | None) -> str:
    """The module that raised an error. What Triton calls, such as a C compiler by way of subprocess, counts as Triton."""
    module = ""
    while traceback is not None:
        name = traceback.tb_frame.f_globals.get("__name__", "")
        if not module.startswith("triton.") or name.startswith("torch_gic."):
            module = name
        traceback = traceback.tb_next
    return module


def first_line(error: BaseException) -> str:
    """That which says what is wrong."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[0] if lines else type(error).__name__)
