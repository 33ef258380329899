import pytest
import torch
from conftest import random_graph
from torch.distributions import Normal

from torch_gic.ops import gaussian_encode, receptive_fields


def mixture(num_scales=3, num_components=4, channels=5, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    mu = torch.randn(num_scales, num_components, channels, generator=generator, dtype=dtype)
    sigma = torch.rand(num_scales, num_components, channels, generator=generator, dtype=dtype) + 0.5
    log_pi = torch.randn(num_scales, num_components, generator=generator, dtype=dtype).log_softmax(-1)
    return mu, sigma, log_pi


def log_likelihood(x, mu, sigma, log_pi, field_index, field_weight, vertex, scale):
    """Eqn. (2) of the paper, from torch's own normal distribution: an oracle that shares no line with the encoding."""
    total = torch.zeros((), dtype=x.dtype)
    for (j, i), a in zip(field_index.t().tolist(), field_weight[:, scale], strict=True):
        if i == vertex and a > 0:
            density = Normal(mu[scale], sigma[scale] / a.sqrt()).log_prob(x[j]).sum(-1)
            total = total + torch.logsumexp(log_pi[scale] + density, dim=0)
    return total


@pytest.mark.parametrize("seed", range(5))
def test_is_the_gradient_of_the_log_likelihood(seed):
    data = random_graph(8, 12, seed=seed, directed=seed % 2 == 1)
    fields = receptive_fields(data.edge_index, data.edge_weight, num_nodes=8, num_scales=3)
    mu, sigma, log_pi = mixture(seed=seed)
    encoding = gaussian_encode(data.x, mu, sigma, log_pi, *fields, 8)
    mu.requires_grad_()
    sigma.requires_grad_()
    for vertex in range(8):
        for scale in range(3):
            zeta = log_likelihood(data.x, mu, sigma, log_pi, *fields, vertex, scale)
            for which, gradient in enumerate(torch.autograd.grad(zeta, (mu, sigma))):
                difference = (encoding[vertex, scale, :, which] - gradient[scale]).norm() / gradient[scale].norm()
                assert difference < 1e-10


def test_by_hand():
    # One component N(0, 2) and a field of two members x = 1, 3 with weights 1/2, 1/4:
    # d/dmu = (1/2 * 1 + 1/4 * 3) / 4 = 5/16; d/dsigma = (1/2 * 1 - 4 + 1/4 * 9 - 4) / 8 = -21/32
    x, mu, sigma = torch.tensor([[1.0], [3.0]]), torch.zeros(1, 1, 1), torch.full((1, 1, 1), 2.0)
    field_index, field_weight = torch.tensor([[0, 1], [0, 0]]), torch.tensor([[0.5], [0.25]])
    encoding = gaussian_encode(x, mu, sigma, torch.zeros(1, 1), field_index, field_weight, 2)
    torch.testing.assert_close(encoding[0].flatten(), torch.tensor([5 / 16, -21 / 32]))
    assert encoding[1].abs().max() == 0  # an empty field


def test_mean_gradients_add_up_to_the_weighted_sum():
    # The responses in the paper's footnote on Figure 1 satisfy this with sigma = 1, 2, 3: its N(0, 2) has sigma = 2.
    data = random_graph()
    field_index, field_weight = receptive_fields(data.edge_index, data.edge_weight, num_nodes=12, num_scales=3)
    mu, sigma, log_pi = mixture()
    encoding = gaussian_encode(data.x, torch.zeros_like(mu), sigma, log_pi, field_index, field_weight, 12)
    for scale in range(3):
        total = (sigma[scale].square() * encoding[:, scale, :, 0]).sum(dim=1)
        weighted = torch.zeros(12, 5, dtype=torch.float64)
        weighted.index_add_(0, field_index[1], field_weight[:, scale : scale + 1] * data.x[field_index[0]])
        torch.testing.assert_close(total, weighted)


@pytest.mark.parametrize("offset", [0.0, 1000.0, -1e5])
@pytest.mark.parametrize("at", ["attributes", "attributes and means", "one mean"])
def test_float32_with_large_offsets(offset, at):
    data = random_graph(20, 40, dtype=torch.float32)
    fields = receptive_fields(data.edge_index, data.edge_weight, num_nodes=20, num_scales=3)
    mu, sigma, log_pi = mixture(dtype=torch.float32)
    x = data.x + offset
    if at == "attributes and means":
        mu = mu + offset
    elif at == "one mean":
        mu[:, 0] += offset
    single = gaussian_encode(x, mu, sigma, log_pi, *fields, 20)
    double = gaussian_encode(x.double(), mu.double(), sigma.double(), log_pi.double(), fields[0], fields[1].double(), 20)
    assert single.dtype == torch.float32
    for which in range(2):
        error = (single[..., which, :] - double[..., which, :]).norm(dim=-1)
        assert (error / double[..., which, :].norm(dim=-1).clamp(min=1e-3)).max() < 1e-4


def test_gradcheck():
    data = random_graph(5, 6, channels=2)
    field_index, field_weight = receptive_fields(data.edge_index, data.edge_weight, num_nodes=5, num_scales=2)
    inputs = [data.x, *mixture(2, 3, 2), field_weight.clamp(min=0.1)]  # at zero an entry leaves the field: a jump
    inputs = [value.clone().requires_grad_() for value in inputs]
    assert torch.autograd.gradcheck(lambda x, mu, sigma, pi, a: gaussian_encode(x, mu, sigma, pi, field_index, a, 5), inputs)


def test_a_weight_of_zero_is_not_in_the_field():
    x, (mu, sigma, log_pi) = torch.randn(3, 5, dtype=torch.float64), mixture(1)
    entries, weight = torch.tensor([[0, 1, 2], [0, 0, 0]]), torch.tensor([[0.3], [0.0], [0.7]], dtype=torch.float64)
    without = gaussian_encode(x, mu, sigma, log_pi, entries[:, [0, 2]], weight[[0, 2]], 1)
    torch.testing.assert_close(gaussian_encode(x, mu, sigma, log_pi, entries, weight, 1), without)


@pytest.mark.parametrize("weight", [0.0, 1e-30, 1e6, 1e30])
@pytest.mark.parametrize("size", [0.0, 1e-20, 1e15])
def test_values_and_gradients_stay_finite(weight, size):
    data = random_graph(6, 8, dtype=torch.float32)
    x = (data.x * size).requires_grad_()
    parameters = [value.float().requires_grad_() for value in mixture(1)]
    a = torch.full((16, 1), weight, requires_grad=True)
    encoding = gaussian_encode(x, *parameters, data.edge_index, a, 6)
    if weight * size**2 < 1e30:  # beyond it the true value is no float32
        assert bool(torch.isfinite(encoding).all())
        for gradient in torch.autograd.grad(encoding.tanh().sum(), [x, *parameters]):
            assert not bool(torch.isnan(gradient).any())


def test_non_contiguous_and_no_entries():
    data = random_graph()
    fields = receptive_fields(data.edge_index, data.edge_weight, num_nodes=12, num_scales=3)
    parameters = mixture()
    strided = data.x.t().contiguous().t()
    assert not strided.is_contiguous()
    torch.testing.assert_close(
        gaussian_encode(strided, *parameters, *fields, 12), gaussian_encode(data.x, *parameters, *fields, 12)
    )
    nothing = gaussian_encode(data.x, *parameters, fields[0][:, :0], fields[1][:0], 12)
    assert nothing.shape == (12, 3, 4, 2, 5)
    assert nothing.abs().max() == 0
