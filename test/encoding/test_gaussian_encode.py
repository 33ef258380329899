"""The one operation of the encoding, in plain PyTorch and in C++: beside an independent likelihood, and beside each other."""

import pytest
import torch
from conftest import random_graph
from torch.distributions import Normal

from torch_gic import Fields, receptive_fields
from torch_gic.encoding import gaussian_encode
from torch_gic.encoding.gaussian_encode import reference, reference_backward
from torch_gic.kernels.library import load_kernels

needs_kernel = pytest.mark.skipif(load_kernels().active == "reference", reason="no compiled kernels here")
forward, backward = torch.ops.torch_gic.gaussian_encode, torch.ops.torch_gic.gaussian_encode_backward
BACKENDS = [
    pytest.param((reference, reference_backward), id="reference"),
    pytest.param((forward, backward), id="kernel", marks=needs_kernel),
]


def mixture(num_scales=3, num_components=4, channels=5, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    mu = torch.randn(num_scales, num_components, channels, generator=generator, dtype=dtype)
    sigma = torch.rand(num_scales, num_components, channels, generator=generator, dtype=dtype) + 0.5
    log_pi = torch.randn(num_scales, num_components, generator=generator, dtype=dtype).log_softmax(-1)
    return mu, sigma, log_pi


def operands(nodes=7, entries=30, d=5, scales=2, components=3, dtype=torch.float64, seed=0):
    """As the operation takes them; a fifth of the weights is zero, and the last node has no field."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(nodes, d, generator=generator, dtype=dtype)
    weight = torch.rand(entries, scales, generator=generator, dtype=dtype)
    weight = weight.masked_fill(torch.rand(entries, scales, generator=generator) < 0.2, 0)
    member = torch.randint(nodes, (entries,), generator=generator)
    count = torch.bincount(torch.randint(nodes - 1, (entries,), generator=generator), minlength=nodes)
    rowptr = torch.nn.functional.pad(count.cumsum(0), (1, 0))
    return x, *mixture(scales, components, d, seed, dtype), weight, member, rowptr


def both_ways(run, inputs):
    """The outputs, and all gradients for a fixed one of each."""
    outputs = run[0](*inputs)
    grads = [torch.linspace(-1, 1, value.numel(), dtype=value.dtype).view_as(value).cos() for value in outputs]
    return [*outputs, *run[1](*grads, *outputs, *inputs)]


def assert_same(inputs, tolerance):
    ours, theirs = both_ways((forward, backward), inputs), both_ways((reference, reference_backward), inputs)
    for kernel, plain in zip(ours, theirs, strict=True):
        assert kernel.shape == plain.shape
        assert bool(torch.isfinite(kernel).all())
        largest = max(1.0, float(plain.abs().amax()) if plain.numel() else 1.0)
        torch.testing.assert_close(kernel, plain, rtol=0, atol=tolerance * largest)


def log_likelihood(x, mu, sigma, log_pi, index, weight, node, scale):
    """Eqn. (2) of the paper, from torch's own normal distribution: an oracle that shares no line with the encoding."""
    total = torch.zeros((), dtype=x.dtype)
    for (j, i), a in zip(index.t().tolist(), weight[:, scale], strict=True):
        if i == node and a > 0:
            density = Normal(mu[scale], sigma[scale] / a.sqrt()).log_prob(x[j]).sum(-1)
            total = total + torch.logsumexp(log_pi[scale] + density, dim=0)
    return total


@pytest.mark.parametrize("run", BACKENDS)
@pytest.mark.parametrize("seed", range(5))
def test_is_the_gradient_of_the_log_likelihood(seed, run):
    data = random_graph(8, 12, seed=seed, directed=seed % 2 == 1)
    fields = receptive_fields(data.edge_index, data.edge_weight, num_nodes=8, num_scales=3, add_self_loops=True)
    mu, sigma, log_pi = mixture(seed=seed)
    encoding, _ = run[0](data.x, mu, sigma, log_pi, fields.weight, fields.index[0], fields.rowptr)
    mu.requires_grad_()
    sigma.requires_grad_()
    for node in range(8):
        for scale in range(3):
            zeta = log_likelihood(data.x, mu, sigma, log_pi, fields.index, fields.weight, node, scale)
            for which, gradient in enumerate(torch.autograd.grad(zeta, (mu, sigma))):
                difference = (encoding[node, scale, :, which] - gradient[scale]).norm() / gradient[scale].norm()
                assert difference < 1e-10


@pytest.mark.parametrize("run", BACKENDS)
def test_by_hand(run):
    # One component N(0, 2) and a field of two members x = 1, 3 with weights 1/2, 1/4:
    # d/dmu = (1/2 * 1 + 1/4 * 3) / 4 = 5/16; d/dsigma = (1/2 * 1 - 4 + 1/4 * 9 - 4) / 8 = -21/32
    x, mu, sigma = torch.tensor([[1.0], [3.0]]), torch.zeros(1, 1, 1), torch.full((1, 1, 1), 2.0)
    weight, member, rowptr = torch.tensor([[0.5], [0.25]]), torch.tensor([0, 1]), torch.tensor([0, 2, 2])
    encoding, mass = run[0](x, mu, sigma, torch.zeros(1, 1), weight, member, rowptr)
    torch.testing.assert_close(encoding[0].flatten(), torch.tensor([5 / 16, -21 / 32]))
    assert mass[0].flatten().tolist() == [0.75, 2.0]
    assert encoding[1].abs().max() == 0  # an empty field


def test_mean_gradients_add_up_to_the_weighted_sum():
    # The responses in the paper's footnote on Figure 1 satisfy this with sigma = 1, 2, 3: its N(0, 2) has sigma = 2.
    data = random_graph()
    fields = receptive_fields(data.edge_index, data.edge_weight, num_nodes=12, num_scales=3)
    mu, sigma, log_pi = mixture()
    encoding, _ = gaussian_encode(data.x, torch.zeros_like(mu), sigma, log_pi, fields)
    for scale in range(3):
        total = (sigma[scale].square() * encoding[:, scale, :, 0]).sum(dim=1)
        weighted = torch.zeros(12, 5, dtype=torch.float64)
        weighted.index_add_(0, fields.index[1], fields.weight[:, scale : scale + 1] * data.x[fields.index[0]])
        torch.testing.assert_close(total, weighted)


@needs_kernel
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize(
    "sizes",
    [
        (7, 30, 5, 2, 3),
        (7, 300, 16, 7, 7),
        (40, 900, 33, 1, 1),
        (40, 900, 32, 1, 5),
        (5, 20, 1, 3, 8),
        (9, 90, 603, 2, 2),
        (6, 50, 4, 2, 33),
        (6, 50, 4, 33, 1),
        (3, 0, 4, 2, 2),
    ],
)
def test_kernel_equals_the_reference(sizes, dtype, tolerance):
    assert_same(operands(*sizes, dtype=dtype), tolerance)


@needs_kernel
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("factor", [0, 1e-6, 1e6, 1e30])
def test_weights_of_any_size(factor, dtype):
    x, mu, sigma, log_pi, weight, *indices = operands(dtype=dtype)
    assert_same((x, mu, sigma, log_pi, factor * weight, *indices), 1e-5)


@pytest.mark.parametrize("run", BACKENDS)
def test_gradients_that_nobody_needs(run):
    inputs = operands()
    outputs = run[0](*inputs)
    everything = run[1](*outputs, *outputs, *inputs)
    for flags, empty in (((False, True), 0), ((True, False), 4)):
        fewer = run[1](*outputs, *outputs, *inputs, *flags)
        for place, (kept, same) in enumerate(zip(fewer, everything, strict=True)):
            assert kept.numel() == 0 if place == empty else torch.equal(kept, same)


@pytest.mark.parametrize("run", BACKENDS)
def test_no_subnormal_numbers(run):
    """With which some processors multiply slowly. Distances are such that responsibilities of all sizes occur."""
    x, *inputs = operands(50, 400, d=3, components=5, dtype=torch.float32)
    results = both_ways(run, (8 * x, *inputs))
    for values in results:
        assert not bool(((values != 0) & (values.abs() < torch.finfo(torch.float32).tiny)).any())
    mass = results[1]
    assert bool((mass[..., 1] == 0).any())
    assert bool(((mass > 0) & (mass < 1e-6)).any())


def test_the_reference_by_hand_is_autograd():
    *values, member, rowptr = operands(4, 12, 3)
    values = [value.requires_grad_() for value in values]
    outputs = reference(*values, member, rowptr)
    grads = [torch.randn_like(value) for value in outputs]
    ours = reference_backward(*grads, *(value.detach() for value in (*outputs, *values)), member, rowptr)
    for mine, autograd in zip(ours, torch.autograd.grad(outputs, values, grads), strict=True):
        torch.testing.assert_close(mine, autograd)


def test_opcheck():
    inputs = operands(4, 12, 3, dtype=torch.float32)
    outputs = forward(*inputs)
    torch.library.opcheck(backward.default, (*map(torch.randn_like, outputs), *outputs, *inputs))
    tracked = [value.requires_grad_() if value.is_floating_point() else value for value in inputs]
    torch.library.opcheck(forward.default, tuple(tracked))


@needs_kernel
def test_same_bits_on_any_number_of_threads():
    inputs, results, threads = operands(500, 9000, 20, 3, 4, dtype=torch.float32), [], torch.get_num_threads()
    for count in (1, 2, 3, 2):
        torch.set_num_threads(count)
        results.append(both_ways((forward, backward), inputs))
    torch.set_num_threads(threads)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize("run", BACKENDS)
def test_non_contiguous_and_no_entries(run):
    inputs = operands()
    strided = [torch.stack([value, value], dim=-1)[..., 0] for value in inputs]
    assert not strided[0].is_contiguous()
    for a, b in zip(both_ways(run, inputs), both_ways(run, strided), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)
    x, *parameters, weight, member, rowptr = inputs
    nothing, _ = run[0](x, *parameters, weight[:0], member[:0], torch.zeros_like(rowptr))
    assert nothing.shape == (7, 2, 3, 2, 5)
    assert nothing.abs().max() == 0


@pytest.mark.parametrize("run", BACKENDS)
def test_a_weight_of_zero_is_not_in_the_field(run):
    x, parameters = torch.randn(3, 5, dtype=torch.float64), mixture(1)
    weight, member = torch.tensor([[0.3], [0.0], [0.7]], dtype=torch.float64), torch.tensor([0, 1, 2])
    kept = torch.tensor([0, 2])
    all_three = run[0](x, *parameters, weight, member, torch.tensor([0, 3]))[0]
    torch.testing.assert_close(all_three, run[0](x, *parameters, weight[kept], member[kept], torch.tensor([0, 2]))[0])


def test_other_weights_and_half_precision():
    x, *parameters, weight, member, rowptr = operands(dtype=torch.float32)
    node = torch.repeat_interleave(torch.arange(7), rowptr.diff())
    fields = Fields(torch.stack([member, node]), weight, rowptr, 7)
    expected = gaussian_encode(x, *parameters, fields)
    doubled = gaussian_encode(x, *parameters, fields, 2 * weight)
    torch.testing.assert_close(doubled, tuple(forward(x, *parameters, 2 * weight, member, rowptr)))
    assert not torch.allclose(doubled[0], expected[0])
    for dtype, tolerance in ((torch.float16, 0.01), (torch.bfloat16, 0.05)):
        halves = gaussian_encode(x.to(dtype), *(value.to(dtype) for value in parameters), fields)
        for half, whole in zip(halves, expected, strict=True):
            assert half.dtype == torch.float32
            assert (half - whole).norm() < tolerance * whole.norm()
