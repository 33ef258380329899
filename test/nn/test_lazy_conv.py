"""GICConv that takes its sizes from the first input, and its start from data."""

import copy
import pickle

import pytest
import torch
from conftest import random_graph
from torch.nn.parameter import is_lazy

from torch_gic import GICConv, receptive_fields


def lazy_layer(hidden_channels, seed=0):
    torch.manual_seed(seed)
    return GICConv(-1, 6, num_scales=2, num_components=3, hidden_channels=hidden_channels)


@pytest.mark.parametrize("hidden_channels", [8, None])
def test_lazy_channels(hidden_channels):
    conv, data = lazy_layer(hidden_channels), random_graph(dtype=torch.float32)
    assert str(conv).startswith("GICConv(-1, 6")
    copies = [copy.deepcopy(conv), pickle.loads(pickle.dumps(conv)), lazy_layer(hidden_channels, seed=1)]
    conv(data.x, data.edge_index)
    out = conv.eval()(data.x, data.edge_index)
    assert conv.filter.mixture.mu.shape == (2, 3, hidden_channels or 5)
    assert str(conv).startswith("GICConv(5, 6")
    for other in copies:
        other.load_state_dict(conv.state_dict())
        torch.testing.assert_close(other.eval()(data.x, data.edge_index), out)
    assert all(bool(torch.isfinite(p).all()) for p in conv.parameters())


@pytest.mark.parametrize("hidden_channels", [16, None])
def test_state_of_a_layer_without_a_size(hidden_channels):
    conv = GICConv(-1, 16, hidden_channels=hidden_channels)
    state = conv.state_dict()
    assert set(state) == {*dict(conv.named_parameters()), *dict(conv.named_buffers())}
    assert any(is_lazy(value) for value in state.values())
    assert is_lazy(state["filter.mixture.mu"]) == (hidden_channels is None)
    other = GICConv(-1, 16, hidden_channels=hidden_channels)
    other.load_state_dict(state)
    assert torch.equal(other.log_scale, conv.log_scale)
    assert other(torch.randn(3, 4), torch.tensor([[0, 1], [1, 2]])).shape == (3, 16)


@pytest.mark.parametrize("hidden_channels", [8, None])
def test_the_first_batch_is_like_later_ones(hidden_channels):
    """No output of a layer differs because it was the one that told the size."""
    conv, data = lazy_layer(hidden_channels), random_graph(dtype=torch.float32)
    first = conv(data.x, data.edge_index)
    first.square().sum().backward()
    gradients = [parameter.grad.clone() for parameter in conv.parameters()]
    conv.zero_grad()
    second = conv(data.x, data.edge_index)
    second.square().sum().backward()
    torch.testing.assert_close(first, second)  # statistics that are averaged are rounded
    for before, parameter in zip(gradients, conv.parameters(), strict=True):
        torch.testing.assert_close(before, parameter.grad, rtol=1e-4, atol=1e-5)
    known = GICConv(5, 6, num_scales=2, num_components=3, hidden_channels=hidden_channels)
    known.load_state_dict(conv.state_dict())
    torch.testing.assert_close(known(data.x, data.edge_index), first)


@pytest.mark.parametrize("hidden_channels", [8, None])
def test_init_from_data_wakes_the_components(hidden_channels):
    torch.manual_seed(0)
    data = random_graph(60, 120, channels=8)
    x = 30 + 5 * data.x  # far from where a new layer has its means
    conv = GICConv(8, 4, num_components=7, num_scales=7, hidden_channels=hidden_channels).double()
    fields = receptive_fields(data.edge_index, num_nodes=60, num_scales=7)
    conv.init_from_data(x, data.edge_index, fields=fields, generator=torch.Generator().manual_seed(0))
    v = conv.eval().filter.prepare(x)[1].detach()  # by the statistics that this batch has left
    torch.testing.assert_close(conv.filter.mixture.mu.mean(), v.mean(), atol=0.6 * float(v.std()), rtol=0)
    torch.testing.assert_close(conv.filter.mixture.sigma[0, 0], v.std(dim=0, unbiased=False), rtol=1e-6, atol=1e-6)
    used = fields.weight > 0
    mean = (fields.weight * conv.log_scale.exp()).sum(0) / used.sum(0)
    torch.testing.assert_close(mean, torch.ones_like(mean))
    entropy = conv.entropy(x, fields)
    assert entropy.shape == (7,)
    assert bool(((entropy > 0) & (entropy < 0.9)).all())
    idle = GICConv(8, 4, num_scales=7, scale=1e-6, hidden_channels=hidden_channels).double()
    torch.testing.assert_close(idle.entropy(data.x, fields), torch.ones(7, dtype=torch.float64), atol=1e-3, rtol=0)


def test_em_wakes_components_of_a_degree():
    """A few hubs among many small degrees, scaled as the benchmarks do it: nearly all of them are near one number."""
    data = random_graph(400, 1600, channels=1, dtype=torch.float32)
    x = torch.linspace(0.002, 1, 400).reciprocal().unsqueeze(1)
    x = (x - x.mean()) / x.std()
    fields = receptive_fields(data.edge_index, num_nodes=400, num_scales=3)
    entropies = []
    for num_iterations in (0, 30):
        conv = GICConv(1, 4, 7, 3, hidden_channels=None)
        conv.init_from_data(
            x, data.edge_index, fields=fields, generator=torch.Generator().manual_seed(0), num_iterations=num_iterations
        )
        entropies.append(conv.entropy(x, fields))
    assert entropies[0].min() > 0.9
    assert entropies[1].max() < 0.75
