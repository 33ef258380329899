"""How mixtures start from data: EM, beside an independent likelihood."""

import itertools

import pytest
import torch
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal

from torch_gic.nn.conv.gaussian_mixture import MIN_PI, GaussianMixture


def log_likelihood(mixture, x, scale=0):
    components = Independent(Normal(mixture.mu[scale], mixture.sigma[scale]), 1)
    return MixtureSameFamily(Categorical(mixture.pi[scale]), components).log_prob(x).sum()


def started(x, num_components=3, num_iterations=0, num_scales=2):
    mixture = GaussianMixture(x.size(1), num_scales, num_components).to(x.dtype)
    mixture.init_from_data(x, torch.Generator().manual_seed(0), num_iterations)
    return mixture


def three_groups():
    torch.manual_seed(0)
    group = torch.arange(3000) % 6
    group = group.clamp(max=2)  # of 500, 500 and 2000 points
    means, deviations = torch.tensor([[-20.0, 0.0], [0.0, 10.0], [20.0, 5.0]]), torch.tensor([2.0, 3.0, 4.0])
    return (means[group] + deviations[group, None] * torch.randn(3000, 2)).double()


def test_em_finds_the_groups_that_are_there():
    mixture = started(three_groups(), num_iterations=100)
    for k in range(2):
        order = mixture.mu[k, :, 0].argsort()
        close = {"rtol": 0, "check_dtype": False}
        expected = torch.tensor([[-20.0, 0.0], [0.0, 10.0], [20.0, 5.0]])
        torch.testing.assert_close(mixture.mu[k, order].detach(), expected, atol=0.5, **close)
        torch.testing.assert_close(mixture.sigma[k, order].mean(-1).detach(), torch.tensor([2.0, 3.0, 4.0]), atol=0.3, **close)
        torch.testing.assert_close(mixture.pi[k, order].detach(), torch.tensor([1 / 6, 1 / 6, 2 / 3]), atol=0.02, **close)


def test_no_step_of_em_lowers_the_likelihood():
    x = three_groups()
    values = [log_likelihood(started(x, 5, steps), x) for steps in range(12)]
    assert all(after >= before - 1e-6 for before, after in itertools.pairwise(values))
    assert values[-1] > values[0] + 100


def test_em_of_one_component_is_mean_and_deviation():
    x = three_groups()
    mixture = started(x, num_components=1, num_iterations=1)
    torch.testing.assert_close(mixture.mu[1, 0].detach(), x.mean(dim=0))
    torch.testing.assert_close(mixture.sigma[1, 0].detach(), x.std(dim=0, unbiased=False))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "x", [torch.ones(1, 2), torch.full((50, 1), 1e6), torch.eye(3).repeat(20, 1), torch.tensor([[0.0], [1e9]])]
)
def test_em_on_few_distinct_points(x, dtype):
    """More components than points, far from zero: nothing becomes NaN, no deviation zero, no component lost for good."""
    mixture = started(x.to(dtype), num_components=7, num_iterations=30)
    assert all(parameter.isfinite().all() for parameter in mixture.parameters())
    assert mixture.sigma.min() > 0
    assert mixture.pi.min() > MIN_PI / 2


def test_em_takes_a_sample_of_many_nodes_and_no_hidden_randomness():
    x = torch.randn(20_000, 1, generator=torch.Generator().manual_seed(1)).exp()
    first, second = started(x, 5, 10), started(x, 5, 10)
    torch.manual_seed(5)
    third = started(x, 5, 10)
    for other in (second, third):
        for name, parameter in first.named_parameters():
            assert torch.equal(parameter, other.get_parameter(name))
    assert log_likelihood(first, x) > log_likelihood(started(x, 5), x)


def test_num_iterations_is_checked():
    with pytest.raises(ValueError, match="'num_iterations' to be at least 0"):
        started(torch.randn(5, 2), num_iterations=-1)
