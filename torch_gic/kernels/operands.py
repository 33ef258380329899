"""What the references refuse, as the kernels do: operands that are malformed.

Values are looked at on the CPU only. On GPUs the host would have to wait for them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torch_gic.kernels.library import is_transformed


def can_look(tensor: Tensor) -> bool:
    """Whether there are values, at hand: not while a model is traced or transformed, and not on a GPU."""
    if torch.compiler.is_compiling() or is_transformed():
        return False
    return type(tensor) in (Tensor, torch.nn.Parameter) and tensor.device.type == "cpu"


def check_tensor(tensor: Tensor, name: str, shape: tuple[int | None, ...], *dtypes: torch.dtype) -> None:
    """A size of None is any; without a type, any is right."""
    if torch.compiler.is_compiling():
        return
    if tensor.dim() != len(shape) or any(size not in (None, is_) for size, is_ in zip(shape, tensor.shape, strict=True)):
        wanted = ", ".join("*" if size is None else str(size) for size in shape)
        raise ValueError(f"Expected '{name}' to have shape [{wanted}] (got {list(tensor.shape)})")
    if dtypes and tensor.dtype not in dtypes:
        raise TypeError(f"Expected '{name}' to hold {' or '.join(map(str, dtypes))} (got {tensor.dtype})")


def check_values(*checks: tuple[str, Tensor, Tensor, str]) -> None:
    """Of each operand: its name, its values, which of them are right, and what is expected of them. For those who can look."""
    for name, values, right, expected in checks:
        if not bool(right.all()):
            raise ValueError(f"Expected '{name}' to {expected} (got {values[~right][0].item()})")


def check_range(tensor: Tensor, name: str, bound: int) -> None:
    """Each value is one of 0 .. bound - 1."""
    if can_look(tensor):
        check_values((name, tensor, (tensor >= 0) & (tensor < bound), f"lie in [0, {bound - 1}]"))


def check_numbers(tensor: Tensor, name: str, expected: str = "finite") -> None:
    """Numbers are finite; and :obj:`"non-negative"` or :obj:`"positive"` if that is expected."""
    if not can_look(tensor):
        return
    right = tensor.isfinite()
    if "non-negative" in expected:
        right = right & (tensor >= 0)
    elif "positive" in expected:
        right = right & (tensor > 0)
    check_values((name, tensor, right, f"be {expected}"))


def check_boundaries(tensor: Tensor, name: str, last: int, most: bool = False) -> None:
    """Where segments begin, and the last one ends: sorted, from 0 to :obj:`last` (or :obj:`most` that)."""
    check_tensor(tensor, name, (None,), torch.int64)
    if not can_look(tensor):
        return
    if tensor.numel() == 0:
        raise ValueError(f"Expected '{name}' to hold at least one value (got none)")
    begin, end = tensor[:1], tensor[-1:]
    check_values(
        (name, begin, begin == 0, "begin with 0"),
        (name, end, end <= last if most else end == last, f"end with {'at most ' if most else ''}{last}"),
        (name, tensor[1:], tensor[1:] >= tensor[:-1], "be sorted"),
    )


def row_of_entries(rowptr: Tensor, num_entries: int) -> Tensor:
    """Which row each entry of compressed rows is in."""
    check_boundaries(rowptr, "rowptr", num_entries)
    rows = torch.arange(rowptr.numel() - 1, device=rowptr.device)
    return torch.repeat_interleave(rows, rowptr.diff(), output_size=num_entries)
