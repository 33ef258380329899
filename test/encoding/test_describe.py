"""What a filter sees of a field: the number, the mean and the spread of its members, whatever their number."""

import math

import pytest
import torch
from conftest import random_graph
from test_gaussian_encode import mixture

from torch_gic import Fields, receptive_fields
from torch_gic.encoding import describe, gaussian_encode


def operands(nodes=6, scales=2, components=3, channels=4, dtype=torch.float64):
    """Of fields without loops, the last of them empty."""
    data = random_graph(nodes - 1, 10, channels=channels, dtype=dtype)
    fields = receptive_fields(data.edge_index, data.edge_weight, num_nodes=nodes, num_scales=scales)
    x = torch.cat([data.x, data.x[:1]])
    mu, sigma, log_pi = mixture(scales, components, channels, dtype=dtype)
    return (*gaussian_encode(x, mu, sigma, log_pi, fields), sigma)


def description(x, weight, components=3):
    """Of one field, whose members have these features and weights: logarithms of counts, and moments."""
    mu, sigma, log_pi = (value.to(x.dtype) for value in mixture(1, components, x.size(1)))
    fields = Fields.from_pair(torch.stack([torch.arange(len(x)), torch.zeros(len(x)).long()]), weight, (len(x), 1))
    out = describe(*gaussian_encode(x, mu, sigma, log_pi, fields), sigma).view(components, -1)
    return out[:, 0], out[:, 1:]


def members(count=50, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(count, 4, generator=generator, dtype=dtype), torch.rand(count, 1, generator=generator, dtype=dtype)


def test_by_hand():
    # One component N(1, 2) and a field of two members x = 1, 5 with weights 1/2, 1/4, so that z = 0, 2. The mass is
    # 3/4 * (1 + 1/10) + 2e-4; the mean 1/4 * 2 = 1/2 over it; the spread 1/2 * (0 - 1) + 1/4 * (4 - 1) = 1/4 over it.
    x, mu, sigma = torch.tensor([[1.0], [5.0]]), torch.ones(1, 1, 1), torch.full((1, 1, 1), 2.0)
    fields = Fields.from_pair(torch.tensor([[0, 1], [0, 0]]), torch.tensor([[0.5], [0.25]]), (2, 1))
    out = describe(*gaussian_encode(x, mu, sigma, torch.zeros(1, 1), fields), sigma)
    torch.testing.assert_close(out.flatten(), torch.tensor([math.log(3), 0.5 / 0.8252, 0.25 / 0.8252]))


def test_formula_for_several_components():
    """With the masses of two components as they are, a tenth of their sum, and a little of the number of members."""
    encoding, mass, sigma = operands(components=2)
    out = describe(encoding, mass, sigma).view(6, 2, 2, 9)
    for c in (0, 1):
        whole = mass[..., c, 0] + 0.1 * mass[..., 0].sum(-1) + 1e-4 * mass[..., c, 1]
        mean = sigma[:, c] * encoding[:, :, c, 0] / whole.unsqueeze(-1)
        second = sigma[:, c] * encoding[:, :, c, 1] + mass[:, :, c, 1:]  # 1 is taken from each square, without a weight
        spread = (second - mass[:, :, c, :1]) / whole.unsqueeze(-1)
        expected = torch.cat([mass[:, :, c, 1:].log1p(), mean, spread], dim=-1)
        torch.testing.assert_close(out[:5, :, c], expected[:5])


def test_an_empty_field_gives_zeros_and_no_gradient():
    encoding, mass, sigma = (value.requires_grad_() for value in map(torch.Tensor.detach, operands()))
    out = describe(encoding, mass, sigma)
    assert out[5].abs().max() == 0
    assert out[:5].flatten(start_dim=1).abs().amax(dim=1).min() > 0
    out.square().sum().backward()
    assert all(value.grad.isfinite().all() for value in (encoding, mass, sigma))
    assert max(float(value.grad[5].abs().max()) for value in (encoding, mass)) == 0


@pytest.mark.parametrize("check", [torch.autograd.gradcheck, torch.autograd.gradgradcheck])
@pytest.mark.parametrize("components", [1, 2])
def test_derivatives(components, check):
    encoding, mass, sigma = operands(nodes=4, components=components, channels=2)
    inputs = [value[:3].detach().requires_grad_() for value in (encoding, mass)]  # at an empty field there is a jump
    assert check(describe, (*inputs, sigma.requires_grad_()))


def test_members_that_appear_twice_count_twice_and_change_nothing_else():
    x, weight = members()
    count, moments = description(x, weight)
    twice, same = description(x.repeat(2, 1), weight.repeat(2, 1))
    torch.testing.assert_close(same, moments)
    torch.testing.assert_close(twice.expm1(), 2 * count.expm1())


def test_the_unit_of_weights_does_not_matter():
    x, weight = members()
    _, moments = description(x, weight, components=1)  # of which the responsibility is one, whatever the weight is
    for factor in (0.1, 1e3, 1e12):  # until the ten-thousandth of the number of members counts
        torch.testing.assert_close(description(x, factor * weight, components=1)[1], moments, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("factor", [1e-12, 1e-6, 1e-3, 1.0, 1e6, 1e30])
@pytest.mark.parametrize("components", [1, 3])
def test_float32_is_exact_for_weights_of_any_size(components, factor):
    """What is taken from the squares of all members, and given back to those of small weight, must not leave rounding."""
    x, weight = members()
    exact = description(x, factor * weight, components)
    for single, double in zip(description(x.float(), (factor * weight).float(), components), exact, strict=True):
        torch.testing.assert_close(single.double(), double, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bounded_for_any_number_of_members(dtype):
    """As long as features are: the logarithm of the count grows, and slowly."""
    x, weight = members(100_000, dtype)
    x = x.clamp(-5, 5)
    count, moments = description(x, weight)
    mu, sigma, _ = mixture(1, 3, 4)
    largest = (5 + mu.abs().max()) / sigma.min()  # of any z
    assert moments.abs().max() <= largest.square()
    assert count.max() <= math.log(1 + 100_000)
    # As many times as many members as no list could hold.
    encoding, mass, sigma = operands(dtype=dtype)
    finite = describe(1e30 * encoding, 1e30 * mass, sigma)
    assert finite.isfinite().all()
    assert finite.abs().max() < 200


def test_a_component_with_hardly_a_member_is_drawn_to_zero():
    """What it has would else be as loud as what thousands have."""
    encoding, mass = torch.ones(1, 1, 2, 2, 3), torch.ones(1, 1, 2, 2)
    mass[0, 0, 1] = encoding[0, 0, 1] = 1e-6
    out = describe(encoding, mass, torch.ones(1, 2, 3)).view(2, 7)
    assert out[0].abs().max() > 0.5
    assert 0 < out[1].abs().max() < 2e-5


def test_transforms_of_torch_func():
    """An operation of one's own would give them zeros, or nothing."""
    inputs = [value.requires_grad_() for value in map(torch.Tensor.detach, operands())]
    expected = torch.autograd.grad(describe(*inputs).sin().sum(), inputs)
    inputs = [value.detach() for value in inputs]
    found = torch.func.grad(lambda *values: describe(*values).sin().sum(), argnums=(0, 1, 2))(*inputs)
    for ours, plain in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, plain)
