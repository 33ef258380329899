"""The kernels that fold means and deviations into a filter against their reference, in Triton's interpreter."""

import sys
from pathlib import Path

import pytest
import torch

from torch_gic.ops.fold_filter import reference, reference_backward

pytest.importorskip("triton")
sys.path.append(str(Path(__file__).parents[1] / "ops"))
from test_fold_filter import operands

from torch_gic.triton import KERNELS

forward, backward = KERNELS["fold_filter"], KERNELS["fold_filter_backward"]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 2e-2}


def results(inputs, both):
    outputs = both[0](*inputs)
    gradients = [torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(out) for out in outputs]
    return *outputs, *both[1](*gradients, *inputs)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize(
    "sizes", [(4, 2, 3, 5), (1, 1, 1, 1), (40, 1, 3, 67), (33, 7, 7, 16), (0, 2, 2, 3), (3, 2, 2, 0)], ids=str
)
def test_kernels_equal_the_reference(sizes, dtype):
    inputs = [value.to(dtype) for value in operands(*sizes)]
    exact = [value.to(torch.promote_types(dtype, torch.float32)) for value in inputs]
    pairs = zip(results(inputs, (forward, backward)), results(exact, (reference, reference_backward)), strict=True)
    for ours, plain in pairs:
        assert ours.shape == plain.shape
        assert ours.dtype == dtype
        if plain.numel() > 0:
            assert float((ours - plain).abs().max()) <= TOLERANCE[dtype] * float(plain.abs().max())


def test_layout_changes_nothing():
    inputs = operands(5, 2, 3, 9, torch.float32)
    transposed = [value.movedim(0, -1).contiguous().movedim(-1, 0) for value in inputs]
    assert not transposed[0].is_contiguous()
    both = forward, backward
    for plain, other in zip(results(inputs, both), results(transposed, both), strict=True):
        assert torch.equal(plain, other)


def test_wrong_operands_are_named():
    weight, mu, sigma = operands()
    with pytest.raises(ValueError, match=r"'weight' to have shape \[4, 60\] .got \[4, 59\]"):
        forward(weight[:, :-1], mu, sigma)
    with pytest.raises(TypeError, match=r"'mu' to hold torch.float64 values"):
        forward(weight, mu.float(), sigma)
    with pytest.raises(ValueError, match=r"'grad_mass' to have shape \[4, 12\] .got \[3, 12\]"):
        backward(weight, torch.ones(3, 12).double(), weight, mu, sigma)
