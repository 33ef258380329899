"""The encoding's kernels against its reference, in Triton's interpreter."""

import importlib

import pytest
import torch
from torch.nn.functional import pad

from torch_gic.encoding.gaussian_encode import reference, reference_backward

pytest.importorskip("triton")
from torch_gic.kernels.triton import KERNELS, gpu
from torch_gic.kernels.triton.encode_tiles import tiles

forward, backward = KERNELS["gaussian_encode"], KERNELS["gaussian_encode_backward"]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}


def operands(nodes=5, entries=24, d=5, scales=2, components=3, dtype=torch.float32, count=None):
    """Random fields in which about a fifth of the weights are zero; of random sizes if the sizes are not given."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(nodes, d, generator=generator)
    mu = torch.randn(scales, components, d, generator=generator)
    sigma = torch.rand(scales, components, d, generator=generator) + 0.5
    log_pi = torch.randn(scales, components, generator=generator).log_softmax(-1)
    weight = torch.rand(entries, scales, generator=generator)
    weight = weight.masked_fill(torch.rand(entries, scales, generator=generator) < 0.2, 0)
    member, node = torch.randint(max(nodes, 1), (2, entries), generator=generator)
    count = torch.bincount(node, minlength=nodes) if count is None else torch.tensor(count)
    values = [value.to(dtype) for value in (x, mu, sigma, log_pi, weight)]
    return *values, member, pad(count.cumsum(0), (1, 0))


def gradients(outputs):
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(value.shape, generator=generator).to(value) for value in outputs]


def both(run, run_backward, inputs):
    """Outputs and gradients."""
    outputs = run(*inputs)
    return [*outputs, *run_backward(*gradients(outputs), *outputs, *inputs)]


def assert_equal_to_the_reference(inputs, tolerance=None):
    """Up to rounding, relative to the largest number of each."""
    tolerance = tolerance or TOLERANCE[inputs[0].dtype]
    for ours, plain in zip(both(forward, backward, inputs), both(reference, reference_backward, inputs), strict=True):
        assert ours.shape == plain.shape
        assert ours.dtype == plain.dtype
        assert ours.is_contiguous()
        assert bool(torch.isfinite(ours).all())
        if plain.numel() > 0:
            assert float((ours - plain).abs().max()) <= tolerance * max(1e-6, float(plain.abs().max()))


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize(
    "sizes",
    [
        (5, 24, 5, 2, 3),
        (3, 60, 40, 7, 7),  # several blocks of entries and of channels
        (4, 20, 1, 3, 8),
        (3, 20, 17, 1, 1),
        (3, 40, 40, 3, 1),
        (3, 12, 4, 2, 33),  # two scales of 33 components: one a tile
        (3, 12, 4, 33, 1),
        (40, 60, 5, 2, 2),  # several blocks of nodes
        (3, 0, 4, 2, 2),
        (3, 0, 4, 2, 1),
        (0, 0, 4, 2, 2),
        (3, 12, 0, 2, 2),
    ],
    ids=str,
)
def test_kernels_equal_the_reference(sizes, dtype):
    assert_equal_to_the_reference(operands(*sizes, dtype=dtype))


@pytest.mark.parametrize("components", [1, 3])
@pytest.mark.parametrize("needed", [(False, True), (True, False), (False, False)])
def test_gradients_that_nobody_needs(components, needed):
    inputs = operands(components=components)
    outputs = forward(*inputs)
    arguments = *gradients(outputs), *outputs, *inputs
    everything, fewer = backward(*arguments), backward(*arguments, *needed)
    needed = [needed[0], True, True, True, needed[1]]
    for kept, all_of_it, is_needed in zip(fewer, everything, needed, strict=True):
        assert torch.equal(kept, all_of_it) if is_needed else kept.numel() == 0


@pytest.mark.parametrize("components", [1, 3])
def test_one_component_reads_no_distances(components, monkeypatch):
    module = importlib.import_module("torch_gic.kernels.triton.encode_tiles")
    calls, distances = [], module._distances
    monkeypatch.setattr(module, "_distances", lambda *values: calls.append(values) or distances(*values))
    log_pi_gradient = both(forward, backward, operands(components=components))[5]
    assert len(calls) == (0 if components == 1 else 2)
    assert bool(log_pi_gradient.any()) == (components > 1)


@pytest.mark.parametrize("components", [1, 3])
def test_one_long_field_among_short_and_empty_ones(components):
    assert_equal_to_the_reference(operands(8, 150, components=components, count=[2, 0, 0, 1, 146, 0, 1, 0, 0]))


@pytest.mark.parametrize("components", [1, 3])
@pytest.mark.parametrize("factor", [0, 1e-6, 1e6, 1e30])
def test_weights_of_any_size(factor, components):
    x, mu, sigma, log_pi, weight, *indices = operands(components=components)
    assert_equal_to_the_reference((x, mu, sigma, log_pi, factor * weight, *indices), 2e-5)


@pytest.mark.parametrize("components", [1, 3])
@pytest.mark.parametrize("offset", [1e3, -1e5])
def test_features_and_means_far_from_zero(offset, components):
    x, mu, *others = operands(components=components)
    assert_equal_to_the_reference((x + offset, mu + offset, *others))


def test_features_far_from_all_means():
    x, *others = operands(dtype=torch.float64)
    assert_equal_to_the_reference((x + 1e3, *others), 1e-9)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize(("exponent", "is_there"), [(-63.9, True), (-64.1, False)])
@pytest.mark.parametrize("by", ["prior", "distance"])
def test_negligible_components_are_exactly_zero(by, exponent, is_there, dtype):
    x, mu, sigma = torch.zeros(1, 1, dtype=dtype), torch.zeros(1, 2, 1, dtype=dtype), torch.ones(1, 2, 1, dtype=dtype)
    log_pi, weight = torch.zeros(1, 2, dtype=dtype), torch.ones(1, 1, dtype=dtype)
    if by == "prior":
        log_pi[0, 1] = exponent
    else:
        mu[0, 1] = (-2 * exponent) ** 0.5
    inputs = x, mu, sigma, log_pi, weight, torch.tensor([0]), torch.tensor([0, 1])
    count = forward(*inputs)[1][0, 0, :, 1]
    assert count[0] == 1
    assert bool(count[1] > 0) == is_there
    for ours, plain in zip(both(forward, backward, inputs), both(reference, reference_backward, inputs), strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-5, atol=1e-5)


def test_more_members_than_nodes():
    assert_equal_to_the_reference(operands(9, 20, count=[5, 5, 0, 10]))


@pytest.mark.parametrize("components", [1, 3])
def test_more_entries_than_fit_at_once(components, monkeypatch):
    inputs = operands(4, 50, components=components)
    whole = both(forward, backward, inputs)
    module = importlib.import_module("torch_gic.kernels.triton.gaussian_encode_backward")
    monkeypatch.setattr(module, "BUFFER", 4 * (5 + 6) * 7)  # seven entries at once, in fields of a dozen
    for a, b in zip(both(forward, backward, inputs), whole, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def test_the_same_bits_every_time():
    inputs = operands(4, 50)
    for a, b in zip(both(forward, backward, inputs), both(forward, backward, inputs), strict=True):
        assert torch.equal(a, b)


def test_more_components_than_a_tile_has():
    assert_equal_to_the_reference(operands(3, 10, 4, 1, 300))


def strided_copy(value):
    return torch.stack([value, value], dim=-1)[..., 0]


def transposed_copy(value):
    return value.movedim(0, -1).contiguous().movedim(-1, 0)


@pytest.mark.parametrize("copy", [strided_copy, transposed_copy])
@pytest.mark.parametrize("components", [1, 3])
def test_non_contiguous(copy, components):
    inputs = operands(components=components)
    outputs = forward(*inputs)
    arguments = *gradients(outputs), *outputs, *inputs
    strided = [copy(value) for value in arguments]
    assert not strided[0].is_contiguous()
    plain = *outputs, *backward(*arguments)
    for a, b in zip(plain, (*forward(*strided[4:]), *backward(*strided)), strict=True):
        assert b.is_contiguous()
        torch.testing.assert_close(a, b)  # of the distances, sums over strided rows may be in another order


def test_offsets_beyond_32_bits():
    """Features of more than 2^31 numbers, of which four rows are used: pages that nobody touches take no memory."""
    generator = torch.Generator().manual_seed(0)
    rows = 2**31 // 512 + 8
    used = torch.tensor([0, 5, rows - 3, rows - 1])
    x, none = torch.empty(rows, 512), torch.empty(0)
    x[used] = torch.randn(4, 512, generator=generator)
    mu, sigma, log_pi = torch.zeros(1, 1, 512), torch.ones(1, 1, 512), torch.zeros(1, 1)
    weight = torch.rand(6, 1, generator=generator)
    member, rowptr = torch.tensor([0, 1, 2, 3, 2, 2]), torch.tensor([0, 3, 6])
    sizes = tiles(1, 1, 512, torch.float32)
    encoding, mass = torch.empty(2, 1, 1, 2, 512), torch.empty(2, 1, 1, 2)
    kernel = importlib.import_module("torch_gic.kernels.triton.gaussian_encode")._encode
    grid = 2, 1, 512 // sizes["CHANNELS"]
    gpu.launch(kernel, grid, x, mu, sigma, none, none, weight, used[member], rowptr, encoding, mass, **sizes)
    expected = reference(x[used], mu, sigma, log_pi, weight, member, rowptr)
    for a, b in zip((encoding, mass), expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("position", "value", "error", "message"),
    [
        (0, torch.ones(5, 5, dtype=torch.bfloat16), TypeError, "'x' to hold float32 or float64 values .got torch.bfloat16"),
        (0, torch.ones(5, 4), ValueError, r"'x' to have shape \[5, 5\] .got \[5, 4\]"),
        (1, torch.ones(2, 0, 5), ValueError, r"'mu' to have shape \[K, C, d\] with at least one component"),
        (2, torch.ones(2, 3, 5, dtype=torch.float64), TypeError, "'sigma' to hold torch.float32 values .got torch.float64"),
        (3, torch.ones(3, 2), ValueError, r"'log_pi' to have shape \[2, 3\] .got \[3, 2\]"),
        (4, torch.ones(24), ValueError, r"'weight' to have shape \[24, 2\] .got \[24\]"),
        (5, torch.zeros(24, dtype=torch.int32), TypeError, "'member' to hold torch.int64 values .got torch.int32"),
        (6, torch.zeros(0, dtype=torch.int64), ValueError, "'rowptr' to hold one number more than there are nodes"),
    ],
)
def test_bad_operands(position, value, error, message):
    inputs = list(operands())
    outputs = forward(*inputs)
    inputs[position] = value
    with pytest.raises(error, match=message):
        forward(*inputs)
    with pytest.raises(error, match=message):
        backward(*outputs, *outputs, *inputs)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (torch.ones(5, 2, 3), ValueError, r"'grad_mass' to have shape \[5, 2, 3, 2\] .got \[5, 2, 3\]"),
        (torch.ones(5, 2, 3, 2, dtype=torch.float64), TypeError, "'grad_mass' to hold torch.float32 values"),
    ],
)
def test_bad_gradient_of_the_masses(value, error, message):
    inputs = operands()
    outputs = forward(*inputs)
    with pytest.raises(error, match=message):
        backward(outputs[0], value, *outputs, *inputs)
