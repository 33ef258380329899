"""Small inputs on which each GPU kernel is compared with its reference before it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

NODES, ENTRIES = 24, 40
# What the largest difference may be, beside the largest number. Rounding is far below, an error in a kernel far above.
TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-9}
Operation = Callable[..., Any]


def mismatch(name: str, kernel: Operation, reference: Operation, device: torch.device, dtype: torch.dtype) -> str | None:
    """What a kernel computes otherwise than its reference, on a device and in a type; ``None`` if nothing."""
    for make_inputs in INPUTS[name]:
        inputs = [value.to(device) if isinstance(value, Tensor) else value for value in make_inputs(dtype)]
        difference = _difference(*(_tensors(function(*inputs)) for function in (kernel, reference)))
        if difference is not None:
            return difference
    return None


def _difference(found: list[Tensor], expected: list[Tensor]) -> str | None:
    for number, (value, wanted) in enumerate(zip(found, expected, strict=True)):
        if value.shape != wanted.shape or value.dtype != wanted.dtype:
            return f"output {number} is {value.dtype} {list(value.shape)}, not {wanted.dtype} {list(wanted.shape)}"
        if not wanted.is_floating_point():
            if not torch.equal(value, wanted):
                return f"output {number} has other numbers"
        elif wanted.numel() > 0:
            error = float((value - wanted).abs().max() / wanted.abs().max())
            if not error <= TOLERANCE[wanted.dtype]:  # nor NaN
                return f"output {number} differs by {error:.2g} of its largest number"
    return None


def _tensors(output: Any) -> list[Tensor]:
    return [output] if isinstance(output, Tensor) else list(output)


def _graph() -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """A symmetric adjacency of two graphs (rows, columns, weights), node weights, ranks and boundaries. All weights differ,
    so that rounding decides nothing; nodes without edges are among them."""
    generator = torch.Generator().manual_seed(0)
    half = NODES // 2
    links = torch.rand(NODES, NODES, generator=generator, dtype=torch.float64)
    links = links * (torch.rand(NODES, NODES, generator=generator) < 0.4)
    links[:half, half:] = 0
    links[-4:] = links[:, -4:] = 0
    links = links.triu(1) + links.triu(1).t()
    row, col = links.nonzero().unbind(1)
    node_weight = torch.rand(NODES, generator=generator, dtype=torch.float64) + 0.5
    rank = torch.cat([torch.randperm(half, generator=generator) for _ in range(2)])
    return row, col, links[row, col], node_weight, rank, torch.tensor([0, half, NODES])


def _adjacency_powers(dtype: torch.dtype) -> tuple[Any, ...]:
    row, col, weight = _graph()[:3]
    return row, col, weight.to(dtype), NODES, 2, None, None


def _gaussian_encode(dtype: torch.dtype) -> tuple[Any, ...]:
    """Two scales and three components, and more channels than one tile has, in both types."""
    generator = torch.Generator().manual_seed(0)
    shape = (2, 3, 20)
    x, mu = (torch.randn(*size, generator=generator, dtype=dtype) for size in ((NODES, shape[-1]), shape))
    sigma = torch.rand(shape, generator=generator, dtype=dtype) + 0.5
    log_pi = torch.randn(shape[:2], generator=generator, dtype=dtype).log_softmax(dim=1)
    weight = torch.rand(ENTRIES, 2, generator=generator, dtype=dtype).clamp(min=0.1) - 0.1  # some are zero
    member = torch.randint(NODES, (ENTRIES,), generator=generator)
    rowptr = torch.tensor([0, 3, 3, 30, ENTRIES])  # one field is empty, one has more entries than are read at once
    return x, mu, sigma, log_pi, weight, member, rowptr


def _gaussian_encode_backward(dtype: torch.dtype) -> tuple[Any, ...]:
    from torch_gic.encoding.gaussian_encode import reference

    inputs = _gaussian_encode(dtype)
    encoding, mass = reference(*inputs)
    generator = torch.Generator().manual_seed(1)
    grad, grad_mass = (torch.randn(value.shape, generator=generator, dtype=dtype) for value in (encoding, mass))
    return grad, grad_mass, encoding, mass, *inputs


def _coarsen(dtype: torch.dtype) -> tuple[Any, ...]:
    row, col, weight, influence, _, ptr = _graph()
    batch = torch.arange(2).repeat_interleave(ptr.diff())
    return torch.stack([row, col]), weight, influence, batch, 2, 0.25, None, 10, 0, True, None


def _coarsen_from_start(dtype: torch.dtype) -> tuple[Any, ...]:
    """Merging leaves little to move. From here nodes move in four iterations, also two at a time between the same clusters."""
    *graph, _, _, num_iterations, max_size, by_degree, _ = _coarsen(dtype)
    return *graph, 1.0, 3, num_iterations, max_size, by_degree, torch.arange(NODES) // 4


def _soft_em(dtype: torch.dtype) -> tuple[Any, ...]:
    row, col, weight, node_weight, rank, ptr = _graph()
    half = NODES // 2
    cluster = torch.cat([torch.arange(half) % 3, 3 + torch.arange(half) % 3])
    diagonal, beta = torch.linspace(2, 3, NODES, dtype=torch.float64), torch.tensor([3.0, 5.0], dtype=torch.float64)
    rowptr = torch.searchsorted(row, torch.arange(NODES + 1))
    return diagonal, rowptr, col, weight, node_weight, rank, ptr, torch.tensor([0, 3, 6]), beta, cluster, 3


INPUTS: dict[str, tuple[Callable[[torch.dtype], tuple[Any, ...]], ...]] = {
    "adjacency_powers": (_adjacency_powers,),
    "coarsen": (_coarsen, _coarsen_from_start),
    "gaussian_encode": (_gaussian_encode,),
    "gaussian_encode_backward": (_gaussian_encode_backward,),
    "soft_em": (_soft_em,),
}
