"""What the encoding promises beside its value: gradients of every order and kind, and numbers of any size."""

import pytest
import torch
from conftest import random_graph
from test_gaussian_encode import mixture
from torch.autograd import forward_ad

from torch_gic import Fields, receptive_fields
from torch_gic.encoding import gaussian_encode


def with_gradients(num_nodes=5, num_edges=6, channels=2, scales=2, components=3):
    """Operands, and the encoding with its masses as a function of them."""
    data = random_graph(num_nodes, num_edges, channels=channels)
    fields = receptive_fields(data.edge_index, data.edge_weight, num_nodes=num_nodes, num_scales=scales)
    weight = fields.weight.clamp(min=0.1)  # at zero an entry leaves the field: a jump
    inputs = [value.clone().requires_grad_() for value in (data.x, *mixture(scales, components, channels), weight)]
    return inputs, lambda x, mu, sigma, log_pi, a: gaussian_encode(x, mu, sigma, log_pi, fields, a)


def joined(outputs):
    """One number of the encoding and of its masses."""
    return sum(value.sin().sum() for value in outputs)


@pytest.mark.parametrize("components", [1, 3])
def test_gradcheck(components):
    inputs, encode = with_gradients(components=components)
    assert torch.autograd.gradcheck(encode, inputs)


@pytest.mark.parametrize("components", [1, 2])
def test_gradgradcheck(components):
    inputs, encode = with_gradients(4, 3, components=components, scales=1)
    assert torch.autograd.gradgradcheck(encode, inputs)


def test_a_gradient_that_is_differentiated_has_the_value_of_one_that_is_not():
    inputs, encode = with_gradients()
    plain = torch.autograd.grad(joined(encode(*inputs)), inputs)
    for a, b in zip(plain, torch.autograd.grad(joined(encode(*inputs)), inputs, create_graph=True), strict=True):
        torch.testing.assert_close(a, b)
    x = inputs[0]
    (penalty,) = torch.autograd.grad(joined(encode(*inputs)), x, create_graph=True)
    (second,) = torch.autograd.grad(penalty.square().sum(), x)
    step = 1e-5 * torch.randn_like(x)
    values = []
    for moved in (x + step, x - step):
        (gradient,) = torch.autograd.grad(joined(encode(moved, *inputs[1:])), moved)
        values.append(gradient.square().sum())
    torch.testing.assert_close((second * step).sum(), (values[0] - values[1]) / 2, rtol=1e-5, atol=1e-12)


def test_transforms_of_torch_func():
    """An operation of one's own would give them zeros, or nothing."""
    inputs, encode = with_gradients()
    expected = torch.autograd.grad(joined(encode(*inputs)), inputs)
    inputs = [value.detach() for value in inputs]
    tangents = [torch.randn_like(value) for value in inputs]
    slope = sum((a * b).sum() for a, b in zip(expected, tangents, strict=True))

    def loss(*values):
        return joined(encode(*values))

    for ours, plain in zip(torch.func.grad(loss, argnums=tuple(range(5)))(*inputs), expected, strict=True):
        torch.testing.assert_close(ours, plain)
    torch.testing.assert_close(torch.func.jvp(loss, tuple(inputs), tuple(tangents))[1], slope)
    with forward_ad.dual_level():
        out = loss(*map(forward_ad.make_dual, inputs, tangents))
        torch.testing.assert_close(forward_ad.unpack_dual(out).tangent, slope)
    x, *others = inputs
    torch.testing.assert_close(
        torch.func.hessian(lambda x: loss(x, *others))(x),
        torch.autograd.functional.hessian(lambda x: loss(x, *others), x),
    )
    both = torch.func.vmap(lambda x: encode(x, *others))(torch.stack([x, 2 * x]))
    for found, *single in zip(both, encode(x, *others), encode(2 * x, *others), strict=True):
        torch.testing.assert_close(found, torch.stack(single))


@pytest.mark.parametrize("components", [1, 3])
def test_gradients_of_both_outputs_are_the_sum_of_those_of_one_alone(components):
    inputs, encode = with_gradients(components=components)
    alone = [torch.autograd.grad(encode(*inputs)[which].sin().sum(), inputs) for which in (0, 1)]
    both = torch.autograd.grad(joined(encode(*inputs)), inputs)
    for whole, of_encoding, of_masses in zip(both, *alone, strict=True):
        torch.testing.assert_close(whole, of_encoding + of_masses)


@pytest.mark.parametrize("offset", [0.0, 1000.0, -1e5])
@pytest.mark.parametrize("at", ["features", "features and means", "one mean"])
def test_float32_with_large_offsets(offset, at):
    data = random_graph(20, 40, dtype=torch.float32)
    fields = receptive_fields(data.edge_index, data.edge_weight, num_nodes=20, num_scales=3)
    mu, sigma, log_pi = mixture(dtype=torch.float32)
    x = data.x + offset
    if at == "features and means":
        mu = mu + offset
    elif at == "one mean":
        mu[:, 0] += offset
    single, masses = gaussian_encode(x, mu, sigma, log_pi, fields)
    double, exact = gaussian_encode(x.double(), mu.double(), sigma.double(), log_pi.double(), fields)
    torch.testing.assert_close(masses.double(), exact, rtol=1e-4, atol=1e-4)
    assert single.dtype == torch.float32
    assert double.dtype == torch.float64
    for which in range(2):
        error = (single[..., which, :] - double[..., which, :]).norm(dim=-1)
        assert (error / double[..., which, :].norm(dim=-1).clamp(min=1e-3)).max() < 1e-4


@pytest.mark.parametrize("weight", [0.0, 1e-30, 1e6, 1e30])
@pytest.mark.parametrize("size", [0.0, 1e-20, 1e15])
def test_values_and_gradients_stay_finite(weight, size):
    data = random_graph(6, 8, dtype=torch.float32)
    x = (data.x * size).requires_grad_()
    parameters = [value.float().requires_grad_() for value in mixture(1)]
    fields = Fields.from_pair(data.edge_index, torch.full((16, 1), weight), (6, 6))
    outputs = gaussian_encode(x, *parameters, fields)
    if weight * size**2 < 1e30:  # beyond it the true value is no float32
        assert all(bool(torch.isfinite(value).all()) for value in outputs)
        for gradient in torch.autograd.grad(sum(value.tanh().sum() for value in outputs), [x, *parameters]):
            assert not bool(torch.isnan(gradient).any())


@pytest.mark.parametrize("components", [1, 3])
def test_nodes_in_no_field_do_not_matter_whatever_their_features_are(components):
    edge_index = torch.tensor([[0, 1, 2, 3], [1, 0, 1, 2]])
    fields = receptive_fields(edge_index, num_nodes=4)
    operands, x = mixture(1, components, 2), torch.randn(4, 2, dtype=torch.float64)
    expected = gaussian_encode(x, *operands, fields)
    fields = Fields(fields.index, fields.weight, fields.rowptr, 8)
    found = gaussian_encode(torch.cat([x, torch.full_like(x, torch.nan)]), *operands, fields)
    torch.testing.assert_close(found, expected)
