import pytest
import torch
from conftest import random_graph

from torch_gic._library import load_kernels
from torch_gic.ops import encode_moments, gaussian_encode, gaussian_filter, receptive_fields
from torch_gic.ops.encode_moments import reference, reference_backward

needs_kernel = pytest.mark.skipif(load_kernels().active == "reference", reason="no compiled kernels here")
forward, backward = torch.ops.torch_gic.encode_moments, torch.ops.torch_gic.encode_moments_backward


def operands(nodes=7, entries=30, d=5, scales=2, components=3, dtype=torch.float64, is_sorted=True, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(nodes, d, generator=generator, dtype=dtype)
    distance = 3 * torch.rand(nodes, scales, components, generator=generator, dtype=dtype)
    prior = torch.randn(scales, components, generator=generator, dtype=dtype)
    weight = torch.rand(entries, scales, generator=generator, dtype=dtype)
    weight = weight.masked_fill(torch.rand(entries, scales, generator=generator) < 0.2, 0)
    member, vertex = torch.randint(nodes, (2, entries), generator=generator)
    return x, distance, prior, weight, member, vertex.sort().values if is_sorted else vertex


@needs_kernel
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize(
    "sizes",
    [
        (7, 30, 5, 2, 3),
        (7, 300, 16, 7, 7),
        (40, 900, 33, 1, 1),
        (5, 20, 1, 3, 8),
        (9, 90, 603, 2, 2),
        (6, 50, 4, 2, 33),
        (6, 50, 4, 33, 1),
        (3, 0, 4, 2, 2),
    ],
)
def test_kernel_equals_the_reference(sizes, is_sorted, dtype, tolerance):
    inputs = operands(*sizes, dtype=dtype, is_sorted=is_sorted)
    outputs = forward(*inputs, sizes[0])
    gradients = [torch.randn_like(output) for output in outputs]
    pairs = [*zip(outputs, reference(*inputs, sizes[0]), strict=True)]
    pairs += zip(backward(*gradients, *inputs), reference_backward(*gradients, *inputs), strict=True)
    for kernel, plain in pairs:
        assert kernel.shape == plain.shape
        torch.testing.assert_close(
            kernel, plain, rtol=0, atol=tolerance * max(1.0, float(plain.abs().amax()) if plain.numel() else 1.0)
        )


@pytest.mark.parametrize("run", [reference_backward, backward])
def test_attributes_that_need_no_gradient(run):
    inputs = operands()
    gradients = [torch.randn_like(output) for output in forward(*inputs, 7)]
    everything, fewer = run(*gradients, *inputs), run(*gradients, *inputs, False)
    assert fewer[0].numel() == 0
    for kept, same in zip(fewer[1:], everything[1:], strict=True):
        assert torch.equal(kept, same)


@needs_kernel
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("factor", [0, 1e-6, 1e6, 1e30])
def test_weights_of_any_size(factor, dtype):
    x, distance, prior, weight, *indices = operands(dtype=dtype)
    inputs = x, distance, prior, factor * weight, *indices
    outputs = forward(*inputs, 7)
    gradients = [torch.ones_like(output) for output in outputs]
    pairs = [*zip(outputs, reference(*inputs, 7), strict=True)]
    pairs += zip(backward(*gradients, *inputs), reference_backward(*gradients, *inputs), strict=True)
    for kernel, plain in pairs:
        assert bool(torch.isfinite(kernel).all())
        torch.testing.assert_close(kernel, plain, rtol=0, atol=1e-5 * max(1.0, float(plain.abs().amax())))


@pytest.mark.parametrize("run", [(reference, reference_backward), (forward, backward)])
def test_no_subnormal_numbers(run):
    """With which some processors multiply slowly. Distances are such that responsibilities of all sizes occur."""
    x, distance, prior, weight, member, vertex = operands(50, 400, d=3, components=5, dtype=torch.float32)
    inputs = x, 200 * distance, prior, weight, member, vertex
    outputs = run[0](*inputs, 50)
    gradients = run[1](*map(torch.ones_like, outputs), *inputs)
    for values in (*outputs, *gradients):
        assert not bool(((values != 0) & (values.abs() < torch.finfo(torch.float32).tiny)).any())
    assert bool((outputs[1] == 0).any())
    assert bool(((outputs[1] > 0) & (outputs[1] < 1e-6)).any())


@pytest.mark.parametrize("function", [encode_moments, "reference"])
def test_gradcheck(function):
    *inputs, member, vertex = operands(4, 12, 3)
    inputs[3] = inputs[3].clamp(min=0.1)  # at zero an entry leaves the field: a jump
    inputs = [value.requires_grad_() for value in inputs]
    if function == "reference":
        outputs = reference(*inputs, member, vertex, 4)
        gradients = [torch.randn_like(output) for output in outputs]
        for ours, autograd in zip(
            reference_backward(*gradients, *(v.detach() for v in inputs), member, vertex),
            torch.autograd.grad(outputs, inputs, gradients),
            strict=True,
        ):
            torch.testing.assert_close(ours, autograd)
    else:
        assert torch.autograd.gradcheck(lambda *values: function(*values, member, vertex, 4), inputs)


def test_opcheck():
    inputs = operands(4, 12, 3, dtype=torch.float32)
    tracked = [value.requires_grad_() if value.is_floating_point() else value for value in inputs]
    torch.library.opcheck(forward.default, (*tracked, 4))
    gradients = [torch.randn_like(output) for output in forward(*inputs, 4)]
    torch.library.opcheck(backward.default, (*gradients, *(value.detach() for value in inputs)))


@needs_kernel
def test_same_bits_on_any_number_of_threads():
    inputs, results, threads = operands(500, 9000, 20, 3, 4, dtype=torch.float32), [], torch.get_num_threads()
    for count in (1, 2, 3, 2):
        torch.set_num_threads(count)
        outputs = forward(*inputs, 500)
        results.append([*outputs, *backward(*outputs, *inputs)])
    torch.set_num_threads(threads)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_non_contiguous():
    inputs = operands()
    strided = [torch.stack([value, value], dim=-1)[..., 0] for value in inputs]
    assert not strided[0].is_contiguous()
    for a, b in zip(forward(*inputs, 7), forward(*strided, 7), strict=True):
        assert torch.equal(a, b)


@needs_kernel
@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (0, torch.ones(7, 5, dtype=torch.float16), "'x' to hold float32 or float64"),
        (1, torch.ones(7, 2, 3), "'distance' to hold float64 values .got float32"),
        (1, torch.ones(6, 2, 3, dtype=torch.float64), "'distance' to have size 7 in dimension 0 .got 6"),
        (3, torch.ones(30, dtype=torch.float64), "'weight' to have 2 dimensions .got 1"),
        (4, torch.full((30,), 7), r"'member' .row 0 of the fields. to lie in \[0, 6\] .got 7"),
        (5, torch.full((30,), -1), r"'vertex' .row 1 of the fields. to lie in \[0, 6\] .got -1"),
    ],
)
def test_bad_operands(position, value, message):
    inputs = list(operands())
    inputs[position] = value
    with pytest.raises(RuntimeError, match=message):
        forward(*inputs, 7)


@needs_kernel
def test_bad_sizes():
    inputs = operands()
    with pytest.raises(RuntimeError, match=r"'num_nodes' to be non-negative .got -1"):
        forward(*inputs, -1)
    x, distance, prior, *entries = inputs
    with pytest.raises(RuntimeError, match="'prior' to hold at least one component"):
        forward(x, distance[..., :0], prior[:, :0], *entries, 7)
    moments, mass = forward(*inputs, 7)
    with pytest.raises(RuntimeError, match=r"'grad_moments' to have size 5 in dimension 4 .got 4"):
        backward(moments[..., :4], mass, *inputs)
    with pytest.raises(RuntimeError, match=r"'grad_mass' to have size 7 in dimension 0 .got 6"):
        backward(moments, mass[:6], *inputs)


def filter_setting(dtype, offset=0.0, mean_offset=0.0, filters=6):
    data = random_graph(20, 40, dtype=torch.float32)
    field_index, field_weight = receptive_fields(data.edge_index, data.edge_weight, num_nodes=20, num_scales=3)
    generator = torch.Generator().manual_seed(0)
    mu = torch.randn(3, 4, 5, generator=generator) + mean_offset
    sigma = torch.rand(3, 4, 5, generator=generator) + 0.5
    log_pi = torch.randn(3, 4, generator=generator).log_softmax(-1)
    weight, bias = torch.randn(filters, 120, generator=generator), torch.randn(filters, generator=generator)
    values = [value.to(dtype) for value in (data.x + offset, mu, sigma, log_pi)]
    return [*values, field_index, field_weight.to(dtype), 20], weight.to(dtype), bias.to(dtype)


@pytest.mark.parametrize("filters", [6, 40])  # fewer and more than the 20 vertices
@pytest.mark.parametrize("with_bias", [True, False])
def test_filter_is_a_linear_map_of_the_encoding(with_bias, filters):
    inputs, weight, bias = filter_setting(torch.float64, filters=filters)
    bias = bias if with_bias else None
    expected = torch.nn.functional.linear(gaussian_encode(*inputs).flatten(1), weight, bias)
    torch.testing.assert_close(gaussian_filter(*inputs, weight, bias), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("filters", [6, 40])
def test_gradients_of_the_filter(filters):
    inputs, weight, bias = filter_setting(torch.float64, filters=filters)
    tensors = [value.requires_grad_() for value in (*inputs[:4], inputs[5], weight, bias)]
    ours = gaussian_filter(*inputs, weight, bias).sin().sum()
    plain = torch.nn.functional.linear(gaussian_encode(*inputs).flatten(1), weight, bias).sin().sum()
    for a, b in zip(torch.autograd.grad(ours, tensors), torch.autograd.grad(plain, tensors), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("filters", [6, 40])
@pytest.mark.parametrize(("offset", "mean_offset"), [(0, 0), (1000, 0), (1000, 1000), (-1e5, -1e5)])
def test_filter_in_float32_with_large_offsets(offset, mean_offset, filters):
    inputs, weight, bias = filter_setting(torch.float32, offset, mean_offset, filters)
    single = gaussian_filter(*inputs, weight, bias)
    double = [value.double() if torch.is_tensor(value) and value.is_floating_point() else value for value in inputs]
    exact = torch.nn.functional.linear(gaussian_encode(*double).flatten(1), weight.double(), bias.double())
    assert ((single - exact).norm(dim=1) / exact.norm(dim=1)).max() < 1e-4
