"""The encoding's kernels against its reference, in Triton's interpreter."""

import importlib

import pytest
import torch

from torch_gic.ops.encode_moments import reference, reference_backward

pytest.importorskip("triton")
from torch_gic.triton import KERNELS

forward, backward = KERNELS["encode_moments"], KERNELS["encode_moments_backward"]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2}


def operands(nodes=5, entries=24, d=5, scales=2, components=3, dtype=torch.float32, is_sorted=False, seed=0):
    """Random fields in which about a fifth of the weights are zero."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(nodes, d, generator=generator)
    distance = 3 * torch.rand(nodes, scales, components, generator=generator)
    prior = torch.randn(scales, components, generator=generator)
    weight = torch.rand(entries, scales, generator=generator)
    weight = weight.masked_fill(torch.rand(entries, scales, generator=generator) < 0.2, 0)
    member, vertex = torch.randint(max(nodes, 1), (2, entries), generator=generator)
    values = [value.to(dtype) for value in (x, distance, prior, weight)]
    return *values, member, vertex.sort().values if is_sorted else vertex


def errors(inputs, num_nodes):
    """The largest error of each output and gradient, relative to the largest number; half precision against float32."""
    outputs = forward(*inputs, num_nodes)
    gradients = [torch.randn(output.shape, generator=torch.Generator().manual_seed(1)).to(output) for output in outputs]
    ours = [*outputs, *backward(*gradients, *inputs)]
    dtype = inputs[0].dtype
    exact = torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype
    gradients = [value.to(exact) for value in gradients]
    inputs = [value.to(exact) if value.is_floating_point() else value for value in inputs]
    plain = [*reference(*inputs, num_nodes), *reference_backward(*gradients, *inputs)]
    for a, b in zip(ours, plain, strict=True):
        assert a.shape == b.shape
        assert a.dtype == dtype
        assert a.is_contiguous()
        assert bool(torch.isfinite(a).all())
    pairs = [pair for pair in zip(ours, plain, strict=True) if pair[1].numel() > 0]
    return [float((a - b).abs().max() / b.abs().max().clamp(min=1e-6)) for a, b in pairs]


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize(
    "sizes",
    [
        (5, 24, 5, 2, 3),
        (3, 60, 40, 7, 7),  # several blocks of entries and of channels
        (4, 20, 1, 3, 8),
        (3, 20, 17, 1, 1),
        (3, 12, 4, 2, 33),  # two scales of 33 components: one a tile
        (3, 12, 4, 33, 1),
        (3, 0, 4, 2, 2),
        (0, 0, 4, 2, 2),
    ],
    ids=str,
)
def test_kernels_equal_the_reference(sizes, dtype):
    for error in errors(operands(*sizes, dtype=dtype), sizes[0]):
        assert error < TOLERANCE[dtype]


def test_attributes_that_need_no_gradient():
    inputs = operands(5, 24, 5, 2, 3, dtype=torch.float32)
    gradients = [torch.randn_like(output) for output in forward(*inputs, 5)]
    everything, fewer = backward(*gradients, *inputs), backward(*gradients, *inputs, False)
    assert fewer[0].numel() == 0
    for kept, same in zip(fewer[1:], everything[1:], strict=True):
        assert torch.equal(kept, same)


def test_float16():
    for error in errors(operands(dtype=torch.float16), 5):
        assert error < 2e-2


def test_one_long_field_among_short_and_empty_ones():
    x, distance, prior, weight, member, _ = operands(8, 150)
    vertex = torch.tensor([0, 0, 3] + [4] * 146 + [6])
    for error in errors((x, distance, prior, weight, member, vertex), 9):
        assert error < 1e-5


@pytest.mark.parametrize("factor", [0, 1e-6, 1e6, 1e30])
def test_weights_of_any_size(factor):
    x, distance, prior, weight, *indices = operands()
    for error in errors((x, distance, prior, factor * weight, *indices), 5):
        assert error < 1e-5


def test_more_members_than_vertices():
    *values, member, vertex = operands(9, 20)
    for error in errors((*values, member, vertex % 4), 4):
        assert error < 1e-5


def test_more_entries_than_fit_at_once(monkeypatch):
    inputs = operands(4, 50)
    outputs = forward(*inputs, 4)
    whole = backward(*outputs, *inputs)
    module = importlib.import_module("torch_gic.triton.encode_moments_backward")
    monkeypatch.setattr(module, "BUFFER", 4 * (5 + 6) * 7)  # seven entries at once, in fields of a dozen
    for a, b in zip(backward(*outputs, *inputs), whole, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_more_components_than_a_tile_has():
    for error in errors(operands(3, 10, 4, 1, 300), 3):
        assert error < 1e-5


def strided_copy(value):
    return torch.stack([value, value], dim=-1)[..., 0]


def transposed_copy(value):
    return value.movedim(0, -1).contiguous().movedim(-1, 0)


@pytest.mark.parametrize("copy", [strided_copy, transposed_copy])
def test_non_contiguous(copy):
    inputs = operands()
    strided = [copy(value) for value in inputs]
    assert not strided[0].is_contiguous()
    outputs = forward(*inputs, 5)
    plain = *outputs, *backward(*outputs, *inputs)
    for a, b in zip(plain, (*forward(*strided, 5), *backward(*outputs, *strided)), strict=True):
        assert torch.equal(a, b)


def test_offsets_beyond_32_bits():
    """Attributes of more than 2^31 numbers, of which four rows are used: pages that nobody touches take no memory."""
    generator = torch.Generator().manual_seed(0)
    rows = 2**31 // 512 + 8
    used = torch.tensor([0, 5, rows - 3, rows - 1])
    x = torch.empty(rows, 512, dtype=torch.bfloat16)
    x[used] = torch.randn(4, 512, generator=generator).bfloat16()
    distance = torch.rand(rows, 1, 2, generator=generator).bfloat16()
    prior, weight = torch.zeros(1, 2, dtype=torch.bfloat16), torch.rand(6, 1, generator=generator).bfloat16()
    member, vertex = torch.tensor([0, 1, 2, 3, 2, 2]), torch.tensor([0, 0, 0, 1, 1, 1])
    outputs = forward(x, distance, prior, weight, used[member], vertex, 2)
    few = x[used].float(), distance[used].float(), prior.float(), weight.float()
    for a, b in zip(outputs, reference(*few, member, vertex, 2), strict=True):
        assert float((a - b).abs().max() / b.abs().max()) < 2e-2


def test_order_of_the_entries_only_rounds():
    *values, weight, member, vertex = operands()
    order = torch.randperm(24, generator=torch.Generator().manual_seed(2))
    shuffled = *values, weight[order], member[order], vertex[order]
    for a, b in zip(forward(*values, weight, member, vertex, 5), forward(*shuffled, 5), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize(
    ("position", "value", "error", "message"),
    [
        (0, torch.ones(5, 5, dtype=torch.int32), TypeError, "'x' to hold float16, bfloat16, float32 or float64"),
        (1, torch.ones(5, 2, 3, dtype=torch.float64), TypeError, "'distance' to hold torch.float32 values .got torch.float64"),
        (1, torch.ones(6, 2, 3), ValueError, r"'distance' to have shape \[5, 2, 3\] .got \[6, 2, 3\]"),
        (3, torch.ones(24), ValueError, r"'weight' to have shape \[24, 2\] .got \[24\]"),
        (4, torch.full((24,), 5), RuntimeError, r"'member' .row 0 of the fields. to lie in \[0, 4\]"),
        (5, torch.full((24,), -1), RuntimeError, r"'vertex' .row 1 of the fields. to lie in \[0, 4\]"),
    ],
)
def test_bad_operands(position, value, error, message):
    inputs = list(operands())
    inputs[position] = value
    with pytest.raises(error, match=message):
        forward(*inputs, 5)


def as_tf32(value):
    """Rounded to the ten bits of TF32."""
    bits = value.view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


def test_three_products_of_ten_bits_are_as_good_as_float32():
    """What ``tf32x3`` computes on NVIDIA's matrix units, which the interpreter does not imitate."""
    generator = torch.Generator().manual_seed(0)
    p, x = torch.rand(49, 500, generator=generator), 10 * torch.randn(500, 64, generator=generator)
    exact = p.double() @ x.double()
    high, low = zip(*((as_tf32(v), as_tf32(v - as_tf32(v))) for v in (p, x)), strict=True)
    products = low[0] @ high[1] + high[0] @ low[1] + high[0] @ high[1]
    error = [float((product - exact).abs().max() / exact.abs().max()) for product in (high[0] @ high[1], products, p @ x)]
    assert error[0] > 1e-5  # one product would not do
    assert error[1] < 1e-6
    assert error[1] < 4 * error[2]
