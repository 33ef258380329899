import copy
import pickle

import pytest
import torch
from conftest import permute, random_graph
from torch_geometric.nn import MessagePassing

from torch_gic import GICConv, receptive_fields
from torch_gic.encoding import describe, gaussian_encode

PAPER = {"hidden_channels": None, "scale": 1.0, "train_scale": False, "root_weight": False}


def layer(in_channels=5, out_channels=6, **kwargs):
    torch.manual_seed(0)
    options = {"num_scales": 3, "num_components": 4, "hidden_channels": 7}
    return GICConv(in_channels, out_channels, **options | kwargs).double()


def trained(conv, data=None):
    """With statistics of the normalisation that are not those it starts with."""
    data = random_graph() if data is None else data
    conv(data.x, data.edge_index)
    return conv.eval()


def test_is_a_pyg_layer():
    conv = GICConv(39, 64)
    assert isinstance(conv, MessagePassing)
    assert str(conv) == "GICConv(39, 64, num_components=5, num_scales=1)"
    assert conv.filter.mixture.mu.shape == (1, 5, 16)
    data = random_graph(channels=39, dtype=torch.float32)
    assert conv(data.x, data.edge_index).shape == (12, 64)
    assert conv(data.x, data.edge_index, data.edge_weight).shape == (12, 64)


@pytest.mark.parametrize(("channels", "printed"), [(39, 244_608), (3, 18_816)])
def test_the_filter_has_the_size_the_paper_prints(channels, printed):
    conv = GICConv(channels, 64, num_components=7, num_scales=7, **PAPER)
    assert conv.filter.lin.weight.numel() == printed
    assert [p.numel() for p in conv.parameters()].count(printed) == 1
    # Means and deviations of each component and channel, log weights, the bias, and the scale, which is not learnt.
    rest = 2 * 7 * 7 * channels + 7 * 7 + 64 + 7
    assert sum(p.numel() for p in conv.parameters()) == printed + rest


def test_parameters_of_the_mixtures():
    mixture = layer().filter.mixture
    assert mixture.mu.shape == mixture.sigma.shape == (3, 4, 7)
    torch.testing.assert_close(mixture.sigma, torch.full_like(mixture.sigma, 7**0.25), atol=1e-6, rtol=0)
    torch.testing.assert_close(mixture.pi.sum(-1), torch.ones(3, dtype=torch.float64))
    with torch.no_grad():
        mixture.rho.fill_(-1e4)  # far below anything training reaches
    assert mixture.sigma.min() > 0


def normalised(x, norm):
    mean, deviation, weight = norm.running
    z = (x - mean / weight) / (deviation / weight)
    return z / (1 + (z / 5).square()).sqrt()


@pytest.mark.parametrize("hidden_channels", [7, None])
@pytest.mark.parametrize("root_weight", [True, False])
def test_forward_is_filter_of_encoding_with_the_scale_applied(root_weight, hidden_channels):
    data = random_graph()
    conv = trained(layer(scale=3.0, root_weight=root_weight, hidden_channels=hidden_channels))
    fields = receptive_fields(data.edge_index, data.edge_weight, num_nodes=12, num_scales=3)
    v, mixture, lin = data.x, conv.filter.mixture, conv.filter.lin
    if hidden_channels:
        projection = conv.filter.projection
        v = normalised(data.x / data.x.std(0, unbiased=False) @ projection.lin.weight.t(), projection.norm)
    encoding, masses = gaussian_encode(v, mixture.mu, mixture.sigma, mixture.pi.log(), fields, 3.0 * fields.weight)
    seen = describe(encoding, masses, mixture.sigma) if hidden_channels else encoding
    terms = torch.einsum("nkcf,okcf->no", seen.reshape(12, 3, 4, -1), lin.weight.view(6, 3, 4, -1))
    if root_weight:
        adjacency = data.x.new_zeros(12, 12).index_put(
            (fields.index[1], fields.index[0]), fields.weight[:, 0], accumulate=True
        )
        mean = adjacency @ data.x / adjacency.sum(1, keepdim=True).clamp(min=1e-9)  # of features themselves; of none, zero
        expected = conv.linear.root(data.x) + mean @ conv.linear.mean.weight.t() + 0.1 * terms
    else:  # the sum of Eqn. (4)
        expected = terms + lin.bias
    torch.testing.assert_close(conv(data.x, data.edge_index, data.edge_weight), expected, rtol=1e-6, atol=1e-6)
    pair = fields.index.flip(1), fields.weight.flip(0)
    for given in (fields, fields.to_dict(), pair):
        out = conv(data.x, data.edge_index, fields=given)
        torch.testing.assert_close(out, expected, rtol=1e-6, atol=1e-6)


def test_copies_and_state():
    data = random_graph()
    conv = trained(layer())
    out = conv(data.x, data.edge_index)
    other = layer().eval()
    other.reset_parameters()
    assert not torch.equal(other(data.x, data.edge_index), out)
    other.load_state_dict(conv.state_dict())
    for twin in (other, copy.deepcopy(conv), pickle.loads(pickle.dumps(conv))):
        assert torch.equal(twin(data.x, data.edge_index), out)


def test_derivatives():
    """By features, edge weights and all parameters, in evaluation: of statistics no gradient is taken."""
    data = random_graph(5, 6, channels=3)
    conv = trained(layer(3, 2, num_scales=2, num_components=2, hidden_channels=2), data)
    names = [name for name, _ in conv.named_parameters()]

    def out(x, edge_weight, *parameters):
        arguments = x, data.edge_index, edge_weight
        return torch.func.functional_call(conv, dict(zip(names, parameters, strict=True)), arguments)

    inputs = [value.detach().clone().requires_grad_() for value in (data.x, data.edge_weight, *conv.parameters())]
    assert torch.autograd.gradcheck(out, inputs)


def test_gradients_reach_every_parameter():
    conv, data = layer(), random_graph()
    conv(data.x, data.edge_index, data.edge_weight).square().sum().backward()
    names = {name for name, _ in conv.named_parameters()}
    assert {
        "filter.lin.weight",
        "filter.projection.lin.weight",
        "linear.root.weight",
        "linear.root.bias",
        "log_scale",
    } <= names
    for name, parameter in conv.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name
    assert layer(train_scale=False).log_scale.requires_grad is False


def test_a_layer_that_is_used_twice_before_the_way_back():
    conv, data = layer(), random_graph()
    outputs = [conv(factor * data.x.requires_grad_(), data.edge_index) for factor in (1.0, 2.0)]
    sum(out.square().sum() for out in outputs).backward()
    assert data.x.grad.isfinite().all()
    assert all(parameter.grad is not None for parameter in conv.parameters())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_finite_wherever_training_takes_the_scale(dtype):
    """At a high rate it runs away, as it did on MUTAG with the paper's: exp(log_scale) is infinite or zero then."""
    conv, data = GICConv(5, 6, num_scales=3, num_components=4).to(dtype), random_graph(dtype=dtype)
    fields = receptive_fields(data.edge_index, num_nodes=12, num_scales=3)
    fields.weight[::2, 0] = 0  # a weight of zero times infinity is not a number
    for value in (-300.0, 11.5, 300.0):
        torch.nn.init.constant_(conv.log_scale, value)
        conv.zero_grad()
        assert conv._scaled(fields.weight.to(dtype)).isfinite().all()
        if dtype != torch.float16:  # whose largest number such weights exceed when summed
            out = conv(data.x, data.edge_index, fields=fields)
            out.square().mean().backward()
            assert all(tensor.isfinite().all() for tensor in (out, *(p.grad for p in conv.parameters())))


def test_options():
    data = random_graph()
    for root_weight in (True, False):
        assert not [name for name, _ in layer(bias=False, root_weight=root_weight).named_parameters() if "bias" in name]
    conv = layer(root_weight=False, bias=False)
    alone = conv(data.x, torch.empty(2, 0, dtype=torch.long))
    assert alone.abs().max() == 0  # without loops and edges all fields are empty
    assert layer(max_neighbors=2).fields(data.x, data.edge_index).rowptr.diff().max() <= 2


def test_batch_equals_its_graphs_in_any_order_of_nodes(graphs):
    parts, batch = graphs
    conv = trained(layer())
    out = conv(batch.x, batch.edge_index, batch.edge_weight, batch=batch.batch)
    alone = torch.cat([conv(part.x, part.edge_index, part.edge_weight) for part in parts])
    torch.testing.assert_close(out, alone, rtol=1e-6, atol=1e-6)
    moved, order = permute(parts[2])
    torch.testing.assert_close(
        conv(moved.x, moved.edge_index, moved.edge_weight)[order], out[batch.batch == 2], rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("hidden_channels", [7, None])
def test_compiled_and_exported(hidden_channels):
    torch.compiler.reset()  # a process compiles eight variants of a function at most
    data = random_graph(dtype=torch.float32)
    conv = GICConv(5, 6, num_scales=2, num_components=3, hidden_channels=hidden_channels)
    fields = conv.fields(data.x, data.edge_index)
    expected = conv(data.x, data.edge_index, fields=fields)
    compiled = torch.compile(conv, fullgraph=True, dynamic=True, backend="aot_eager")
    out = compiled(data.x, data.edge_index, fields=fields)
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)
    out.sum().backward()
    assert all(parameter.grad is not None for parameter in conv.parameters())
    for given in ({}, {"fields": fields.to_dict()}, {"fields": (fields.index, fields.weight)}):
        torch.testing.assert_close(compiled(data.x, data.edge_index, **given), expected, rtol=1e-4, atol=1e-5)
    conv.eval()
    pair = fields.index, fields.weight
    expected = conv(data.x, data.edge_index, fields=pair)
    exported = torch.export.export(conv, (data.x, data.edge_index), {"fields": pair}).module()
    torch.testing.assert_close(exported(data.x, data.edge_index, fields=pair), expected)


def test_half_precision_and_autocast():
    torch.manual_seed(0)
    conv, data = GICConv(5, 6, num_scales=2, num_components=3), random_graph(dtype=torch.float32)
    expected = conv(data.x, data.edge_index)
    with torch.autocast("cpu", torch.bfloat16):
        out = conv(data.x, data.edge_index)
    assert (out - expected).norm() < 0.02 * expected.norm()
    for dtype, tolerance in ((torch.bfloat16, 0.05), (torch.float16, 0.01)):
        out = copy.deepcopy(conv).to(dtype)(data.x.to(dtype), data.edge_index)
        assert out.dtype == dtype
        assert (out - expected).norm() < tolerance * expected.norm()


@pytest.mark.parametrize("training", [True, False])
def test_odd_graphs(odd, training):
    conv = trained(layer()).train(training)
    out = conv(odd.x.requires_grad_(), odd.edge_index, odd.edge_weight)
    assert out.shape == (odd.num_nodes, 6)
    assert bool(torch.isfinite(out).all())
    out.sum().backward()
    assert bool(torch.isfinite(odd.x.grad).all())
