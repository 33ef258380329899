import copy

import pytest
import torch
from conftest import random_graph
from torch_geometric.nn import SAGEConv

from torch_gic import Fields, GaussianAggregation
from torch_gic.encoding import describe, gaussian_encode

X = torch.randn(10, 5, generator=torch.Generator().manual_seed(0))
INDEX = torch.tensor([0, 0, 1, 0, 3, 0, 3, 1, 0, 3])  # set 2 is empty


def aggregation(**kwargs):
    torch.manual_seed(0)
    return GaussianAggregation(5, **{"num_components": 3, "hidden_channels": 4} | kwargs)


def evaluated(aggr):
    """After one batch: what the normalisation does then depends on no batch."""
    aggr(X, INDEX)
    return aggr.eval()


@pytest.mark.parametrize("hidden_channels", [4, None])
def test_equals_the_encoding_with_weights_of_one(hidden_channels):
    aggr = evaluated(aggregation(hidden_channels=hidden_channels))
    assert str(aggr) == "GaussianAggregation(5, 5, num_components=3)"
    mixture, lin = aggr.filter.mixture, aggr.filter.lin
    v = X if hidden_channels is None else aggr.filter.prepare(X)[1]
    fields = Fields.from_pair(torch.stack([torch.arange(10), INDEX]), torch.ones(10, 1), (10, 4))
    encoding, masses = gaussian_encode(v, mixture.mu, mixture.sigma, mixture.pi.log(), fields)
    seen = encoding if hidden_channels is None else describe(encoding, masses, mixture.sigma)
    out = aggr(X, INDEX, dim_size=4)
    torch.testing.assert_close(out, lin(seen.flatten(start_dim=1)), rtol=1e-5, atol=1e-5)
    assert out.shape == (4, 5)
    torch.testing.assert_close(out[2], lin.bias)
    assert aggregation(out_channels=11)(X, INDEX).shape == (4, 11)


def test_index_ptr_and_order():
    aggr = evaluated(aggregation())
    out = aggr(X, INDEX)
    order = torch.argsort(INDEX, stable=True)
    torch.testing.assert_close(aggr(X[order], INDEX[order]), out)
    torch.testing.assert_close(aggr(X[order], ptr=torch.tensor([0, 5, 7, 7, 10])), out)
    assert aggr(X).shape == (1, 5)
    assert aggr(X[:0], INDEX[:0], dim_size=2).shape == (2, 5)


def test_weights():
    aggr = evaluated(aggregation())
    torch.testing.assert_close(aggr(X, INDEX, weight=torch.ones(10)), aggr(X, INDEX))
    without = aggr(X[1:], INDEX[1:])
    torch.testing.assert_close(aggr(X, INDEX, weight=torch.ones(10).index_fill(0, torch.tensor([0]), 0.0)), without)
    with pytest.raises(ValueError, match="'weight' to be non-negative"):
        aggr(X, INDEX, weight=-torch.ones(10))
    with pytest.raises(ValueError, match=r"'weight' to have shape \[10\]"):
        aggr(X, INDEX, weight=torch.ones(3))


def test_in_a_pyg_layer_and_lazily():
    data = random_graph(dtype=torch.float32)
    conv = SAGEConv(5, 8, aggr=aggregation())
    out = conv(data.x, data.edge_index)
    assert out.shape == (12, 8)
    out.sum().backward()
    assert conv.aggr_module.filter.mixture.mu.grad.abs().max() > 0
    torch.testing.assert_close(copy.deepcopy(conv)(data.x, data.edge_index), out)
    lazy = GaussianAggregation(-1, 7)
    assert lazy(X, INDEX).shape == (4, 7)
    with pytest.raises(ValueError, match="'out_channels' to be given"):
        GaussianAggregation(-1)


def test_reset_and_errors():
    aggr = aggregation()
    before = aggr(X, INDEX)
    aggr.reset_parameters()
    assert not torch.equal(aggr(X, INDEX), before)
    with pytest.raises(ValueError, match="two-dimensional"):
        aggr(X.view(2, 5, 5), INDEX[:5])
    with pytest.raises(TypeError, match="unexpected keyword"):
        aggr(X, INDEX, weights=torch.ones(10))
