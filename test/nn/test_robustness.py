"""What a network does with data unlike its training data, and under the default compiler."""

import pytest
import torch
from torch_geometric.data import Batch, Data

from torch_gic import GIC, GICConv


def path(size, channels=8):
    nodes = torch.arange(size - 1)
    edges = torch.stack([nodes, nodes + 1])
    return Data(x=torch.randn(size, channels), edge_index=torch.cat([edges, edges.flip(0)], dim=1))


def paths(first):
    return Batch.from_data_list([path(first + number) for number in range(4)])


def output(model, data, x=None):
    return model(data.x if x is None else x, data.edge_index, batch=data.batch)


@pytest.fixture
def model():
    torch.manual_seed(0)
    model = GIC(8, 2, "C(16)-P(0.5)-C(16)-P-FC(16)")
    for first in (5, 6, 7):
        output(model, paths(first))  # what the normalisations remember
    return model.eval()


@torch.no_grad()
def test_an_outlier_moves_the_output_by_a_bounded_amount(model):
    """From ten thousand deviations on, nothing changes any more."""
    data = paths(6)
    outputs = []
    for size in (1e4, 1e8, 1e15):
        x = data.x.clone()
        x[3, 2] = size
        outputs.append(output(model, data, x))
    assert (outputs[0] - output(model, data)).abs().max() < 10
    for other in outputs[1:]:
        torch.testing.assert_close(other, outputs[0], rtol=1e-3, atol=1e-3)


@torch.no_grad()
def test_graphs_unlike_all_others(model):
    """All features far away, and a hub with a thousand neighbours."""
    data = paths(6)
    far = [output(model, data, factor * data.x + 1e3 * factor) for factor in (1e2, 1e6)]
    torch.testing.assert_close(far[1], far[0], rtol=0.05, atol=0.05)
    leaves = torch.arange(1, 1001)
    edges = torch.stack([torch.zeros_like(leaves), leaves])
    star = torch.cat([edges, edges.flip(0)], dim=1)
    assert model(torch.randn(1001, 8), star).abs().max() < 100


@torch.no_grad()
@pytest.mark.parametrize("training", [True, False])
def test_the_mixture_sees_the_same_in_any_unit_of_features(training):
    """And with another unit in each channel. All but the mixture sees the features themselves."""
    data, seen = paths(6), []
    for factor in (1.0, 1e-3, 1e3, torch.logspace(-3, 3, 8)):
        torch.manual_seed(0)
        conv = GICConv(8, 4)
        x = factor * data.x
        conv(x, data.edge_index)
        conv.train(training)
        seen.append(conv.filter.prepare(x)[1])
    assert seen[0].std() > 0.5
    for other in seen[1:]:
        torch.testing.assert_close(other, seen[0], rtol=1e-3, atol=1e-4)


@torch.no_grad()
def test_the_linear_part_sees_features_themselves():
    """Of two units in which features are of ordinary size, the larger gives a larger output."""
    data, conv = paths(6), GICConv(8, 4, bias=False)
    for parameter in conv.filter.lin.parameters():
        torch.nn.init.zeros_(parameter)
    outputs = []
    for factor in (1.0, 0.5):
        conv.filter.projection.reset_statistics()
        outputs.append(conv(factor * data.x, data.edge_index))
    torch.testing.assert_close(outputs[1], 0.5 * outputs[0])
    # Beyond the longest and the shortest vectors, the unit does not matter any more.
    for factors in ((1e3, 1e6), (1e-3, 1e-6)):
        far = []
        for factor in factors:
            conv.filter.projection.reset_statistics()
            far.append(conv(factor * data.x, data.edge_index))
        torch.testing.assert_close(far[1], far[0], rtol=1e-3, atol=1e-4)


def check_compiled(model, batches, dynamic=None):
    expected = [output(model, data) for data in batches]
    torch.compiler.reset()
    compiled = torch.compile(model, dynamic=dynamic)
    for data, wanted in zip(batches, expected, strict=True):
        torch.testing.assert_close(output(compiled, data), wanted, rtol=1e-3, atol=1e-4)
    return compiled


@pytest.mark.filterwarnings("ignore::UserWarning")  # of the compiler itself
@torch.no_grad()
def test_compiled_by_the_default_backend():
    """With sizes that change."""
    model = GIC(8, 2, "C(8)-P-FC(8)", readout="last")
    output(model, paths(5))
    check_compiled(model.eval(), [paths(first) for first in (5, 6)])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("dynamic", [None, True])
def test_a_whole_network_compiled_and_trained(model, dynamic):
    batches = [paths(first) for first in (5, 6, 7)]
    compiled = check_compiled(model, batches, dynamic)
    model.train()
    for data in batches:
        output(compiled, data).square().sum().backward()
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in model.parameters())
