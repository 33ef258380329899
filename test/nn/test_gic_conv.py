import copy
import pickle

import pytest
import torch
from conftest import permute, random_graph
from torch_geometric import EdgeIndex
from torch_geometric.nn import MessagePassing
from torch_geometric.testing import withPackage
from torch_geometric.utils import coalesce, to_torch_coo_tensor, to_torch_csc_tensor, to_torch_csr_tensor

from torch_gic import GICConv, receptive_fields


def layer(in_channels=5, out_channels=6, **kwargs):
    torch.manual_seed(0)
    return GICConv(in_channels, out_channels, **{"num_scales": 3, "num_components": 4} | kwargs).double()


def simple_graph():
    """A directed graph without parallel edges, which sparse matrices cannot hold."""
    data = random_graph(directed=True)
    data.edge_index, data.edge_weight = coalesce(data.edge_index, data.edge_weight)
    return data


def test_is_a_pyg_layer():
    conv = GICConv(39, 64)
    assert isinstance(conv, MessagePassing)
    assert str(conv) == "GICConv(39, 64, num_scales=7, num_components=7)"
    data = random_graph(channels=39, dtype=torch.float32)
    assert conv(data.x, data.edge_index).shape == (12, 64)
    assert conv(data.x, data.edge_index, data.edge_weight).shape == (12, 64)


@pytest.mark.parametrize(("channels", "printed"), [(39, 244_608), (3, 18_816)])
def test_the_filter_has_the_size_the_paper_prints(channels, printed):
    conv = GICConv(channels, 64)
    assert conv.lin.weight.numel() == printed
    assert [p.numel() for p in conv.parameters()].count(printed) == 1


def test_parameters_of_the_mixtures():
    conv = layer()
    assert conv.mu.shape == conv.sigma.shape == (3, 4, 5)
    torch.testing.assert_close(conv.sigma, torch.full_like(conv.sigma, 5**0.25), atol=1e-6, rtol=0)
    torch.testing.assert_close(conv.pi.sum(-1), torch.ones(3, dtype=torch.float64))
    with torch.no_grad():
        conv.mixture.rho.fill_(-1e4)  # far below anything training reaches
    assert conv.sigma.min() > 0


@pytest.mark.parametrize("root_weight", [True, False])
def test_forward_is_filter_of_encoding_with_the_scale_applied(root_weight):
    conv, data = layer(scale=3.0, root_weight=root_weight), random_graph()
    field_index, field_weight = receptive_fields(data.edge_index, data.edge_weight, num_nodes=12, num_scales=3)
    encoding = conv.encode(data.x, field_index, 3.0 * field_weight)
    assert encoding.shape == (12, 3, 4, 2, 5)
    if root_weight:
        terms = torch.einsum("nkcf,okcf->no", encoding.flatten(3), conv.lin.weight.view(6, 3, 4, 10))
        expected = data.x @ conv.lin_root.weight.t() + conv.lin_root.bias + terms / (3 * 4)
    else:  # the sum of Eqn. (4)
        expected = encoding.flatten(1) @ conv.lin.weight.t() + conv.lin.bias
    torch.testing.assert_close(conv(data.x, data.edge_index, data.edge_weight), expected)
    torch.testing.assert_close(conv(data.x, data.edge_index, fields=(field_index, field_weight)), expected)


def test_edge_index_in_every_form():
    conv, data = layer(), simple_graph()
    expected = conv(data.x, data.edge_index, data.edge_weight)
    for convert in (to_torch_coo_tensor, to_torch_csr_tensor, to_torch_csc_tensor):
        transposed = convert(data.edge_index.flip(0), data.edge_weight, size=(12, 12))
        torch.testing.assert_close(conv(data.x, transposed), expected)
    edges = EdgeIndex(data.edge_index, sparse_size=(12, 12))
    torch.testing.assert_close(conv(data.x, edges, data.edge_weight), expected)
    wide = to_torch_coo_tensor(data.edge_index, size=(12, 13))
    with pytest.raises(ValueError, match=r"'edge_index' to be a square matrix .*\[12, 13\]"):
        conv(data.x, wide)
    assert receptive_fields(EdgeIndex([[0], [1]], sparse_size=(5, 5)), num_scales=1)[0].size(1) == 6  # five loops
    with pytest.raises(ValueError, match="'edge_weight' to be None"):
        conv(data.x, to_torch_coo_tensor(data.edge_index, size=(12, 12)), data.edge_weight)


@withPackage("torch_sparse")
def test_sparse_tensor():
    from torch_sparse import SparseTensor

    conv, data = layer(), simple_graph()
    row, col = data.edge_index
    transposed = SparseTensor(row=col, col=row, value=data.edge_weight, sparse_sizes=(12, 12))
    torch.testing.assert_close(conv(data.x, transposed), conv(data.x, data.edge_index, data.edge_weight))


def test_lazy_channels():
    conv, data = GICConv(-1, 6, num_scales=2, num_components=3), random_graph(dtype=torch.float32)
    copies = [copy.deepcopy(conv), pickle.loads(pickle.dumps(conv))]
    out = conv(data.x, data.edge_index)
    assert conv.mu.shape == (2, 3, 5)
    assert str(conv).startswith("GICConv(5, 6")
    for lazy in (*copies, GICConv(-1, 6, num_scales=2, num_components=3)):
        lazy.load_state_dict(conv.state_dict())
        torch.testing.assert_close(lazy(data.x, data.edge_index), out)
    assert all(bool(torch.isfinite(p).all()) for p in conv.parameters())


def test_copies_and_state():
    conv, data = layer(), random_graph()
    out = conv(data.x, data.edge_index)
    other = layer()
    other.reset_parameters()
    assert not torch.equal(other(data.x, data.edge_index), out)
    other.load_state_dict(conv.state_dict())
    for twin in (other, copy.deepcopy(conv), pickle.loads(pickle.dumps(conv))):
        assert torch.equal(twin(data.x, data.edge_index), out)


def test_gradients_reach_every_parameter():
    conv, data = layer(), random_graph()
    conv(data.x, data.edge_index, data.edge_weight).square().sum().backward()
    assert {"lin.weight", "lin_root.weight", "lin_root.bias"} <= {name for name, _ in conv.named_parameters()}
    for name, parameter in conv.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name
    assert layer(train_scale=False).log_scale.requires_grad is False


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_finite_wherever_training_takes_the_scale(dtype):
    """At a high rate it runs away, as it did on MUTAG with the paper's: exp(log_scale) is infinite or zero then."""
    conv, data = GICConv(5, 6, num_scales=3, num_components=4).to(dtype), random_graph(dtype=dtype)
    field_index, field_weight = receptive_fields(data.edge_index, num_nodes=12, num_scales=3)
    field_weight[::2, 0] = 0  # a weight of zero times infinity is not a number
    for value in (-300.0, 11.5, 300.0):
        torch.nn.init.constant_(conv.log_scale, value)
        conv.zero_grad()
        scaled = conv._scaled(field_weight.to(dtype))
        assert scaled.isfinite().all()
        if dtype != torch.float16:  # whose largest number such weights exceed when summed
            out = conv(data.x, data.edge_index, fields=(field_index, field_weight))
            out.square().mean().backward()
            assert all(tensor.isfinite().all() for tensor in (out, *(p.grad for p in conv.parameters())))


def test_options():
    data = random_graph()
    for root_weight in (True, False):
        assert not [name for name, _ in layer(bias=False, root_weight=root_weight).named_parameters() if "bias" in name]
    conv = layer(add_self_loops=False)
    alone = conv.encode(data.x, *conv.fields(data.x, torch.empty(2, 0, dtype=torch.long)))
    assert alone.abs().max() == 0  # without loops and edges all fields are empty
    conv = layer(max_neighbors=2)
    assert torch.bincount(conv.fields(data.x, data.edge_index)[0][1]).max() <= 2


def test_init_from_data_wakes_the_components():
    torch.manual_seed(0)
    data = random_graph(60, 120, channels=8)
    x = 30 + 5 * data.x  # far from where a new layer has its means
    conv = GICConv(8, 4).double()
    fields = receptive_fields(data.edge_index, num_nodes=60)
    conv.init_from_data(x, data.edge_index, fields=fields, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(conv.mu.mean(), x.mean(), atol=3.0, rtol=0)
    torch.testing.assert_close(conv.sigma[0, 0], x.std(dim=0, unbiased=False))
    used = fields[1] > 0
    mean = (fields[1] * conv.log_scale.exp()).sum(0) / used.sum(0)
    torch.testing.assert_close(mean, torch.ones_like(mean))
    entropy = conv.entropy(x, *fields)
    assert entropy.shape == (7,)
    assert bool(((entropy > 0) & (entropy < 0.9)).all())
    idle = GICConv(8, 4, scale=1e-6).double()
    torch.testing.assert_close(idle.entropy(data.x, *fields), torch.ones(7, dtype=torch.float64), atol=1e-3, rtol=0)


def test_em_wakes_components_of_a_degree():
    """A few hubs among many small degrees, scaled as the benchmarks do it: nearly all of them are near one number."""
    data = random_graph(400, 1600, channels=1, dtype=torch.float32)
    x = torch.linspace(0.002, 1, 400).reciprocal().unsqueeze(1)
    x = (x - x.mean()) / x.std()
    fields = receptive_fields(data.edge_index, num_nodes=400, num_scales=3)
    entropies = []
    for num_iterations in (0, 30):
        conv = GICConv(1, 4, 3, 7)
        conv.init_from_data(
            x, data.edge_index, fields=fields, generator=torch.Generator().manual_seed(0), num_iterations=num_iterations
        )
        entropies.append(conv.entropy(x, *fields))
    assert entropies[0].min() > 0.9
    assert entropies[1].max() < 0.75


def test_batch_equals_its_graphs_in_any_order_of_vertices(graphs):
    parts, batch = graphs
    conv = layer()
    out = conv(batch.x, batch.edge_index, batch.edge_weight, batch=batch.batch)
    alone = torch.cat([conv(part.x, part.edge_index, part.edge_weight) for part in parts])
    torch.testing.assert_close(out, alone, rtol=1e-6, atol=1e-6)
    moved, order = permute(parts[2])
    torch.testing.assert_close(
        conv(moved.x, moved.edge_index, moved.edge_weight)[order], out[batch.batch == 2], rtol=1e-6, atol=1e-6
    )


def test_compiled_and_exported():
    conv, data = GICConv(5, 6, num_scales=2, num_components=3), random_graph(dtype=torch.float32)
    fields = conv.fields(data.x, data.edge_index)
    expected = conv(data.x, data.edge_index, fields=fields)
    compiled = torch.compile(conv, fullgraph=True, dynamic=True, backend="aot_eager")
    out = compiled(data.x, data.edge_index, fields=fields)
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)
    out.sum().backward()
    out = compiled(data.x, data.edge_index)
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)
    exported = torch.export.export(conv, (data.x, data.edge_index), {"fields": fields}).module()
    torch.testing.assert_close(exported(data.x, data.edge_index, fields=fields), expected)


def test_half_precision_and_autocast():
    torch.manual_seed(0)
    conv, data = GICConv(5, 6, num_scales=2, num_components=3), random_graph(dtype=torch.float32)
    expected = conv(data.x, data.edge_index)
    with torch.autocast("cpu", torch.bfloat16):
        out = conv(data.x, data.edge_index)
    assert out.dtype == torch.bfloat16
    assert (out - expected).norm() < 0.02 * expected.norm()
    out = conv.bfloat16()(data.x.bfloat16(), data.edge_index)
    assert out.dtype == torch.bfloat16
    assert (out - expected).norm() < 0.05 * expected.norm()


def test_odd_graphs(odd):
    conv = layer()
    out = conv(odd.x.requires_grad_(), odd.edge_index, odd.edge_weight)
    assert out.shape == (odd.num_nodes, 6)
    assert bool(torch.isfinite(out).all())
    out.sum().backward()
    assert bool(torch.isfinite(odd.x.grad).all())


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (ValueError, "'in_channels' to be at least 1.*0", {"in_channels": 0}),
        (ValueError, "'num_scales' to be at least 1.*0", {"num_scales": 0}),
        (ValueError, "'num_components' to be at least 1.*-2", {"num_components": -2}),
        (ValueError, "'scale' to be positive.*0", {"scale": 0.0}),
        (ValueError, "'scale' to be positive.*nan", {"scale": float("nan")}),
        (ValueError, "'max_neighbors' to be at least 1.*0", {"max_neighbors": 0}),
        (ValueError, "'out_channels' to be at least 1.*0", {"out_channels": 0}),
        (TypeError, "unexpected keyword argument 'aggr'", {"aggr": "mean"}),
    ],
)
def test_bad_settings(error, message, arguments):
    with pytest.raises(error, match=message):
        GICConv(**{"in_channels": 5, "out_channels": 6} | arguments)


def fields_of(member, vertex):
    return torch.tensor([[0, member], [0, vertex]]), torch.ones(2, 7)


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (ValueError, r"'x' to have shape \[num_nodes, 5\].*\[12, 4\]", {"x": torch.randn(12, 4)}),
        (ValueError, r"'x' to have shape \[num_nodes, 5\].*\[12\]", {"x": torch.randn(12)}),
        (TypeError, "'x' to be floating point.*int64", {"x": torch.ones(12, 5, dtype=torch.long)}),
        (ValueError, r"'x' to have shape \[num_nodes, 5\].*\[1, 12, 5\]", {"x": torch.randn(1, 12, 5)}),
        (TypeError, "'x' to be torch.float32.*float64", {"x": torch.randn(12, 5, dtype=torch.float64)}),
        (TypeError, "'x' to be a tensor.*list", {"x": [[1.0] * 5] * 12}),
        (TypeError, "'edge_weight' to be a tensor.*float", {"edge_weight": 2.0}),
        (ValueError, "'edge_index' to hold vertices", {"x": torch.randn(3, 5)}),
        (ValueError, r"'edge_weight' to have shape .*60, 1\]\); take .squeeze", {"edge_weight": torch.ones(60, 1)}),
        (ValueError, "'edge_weight' to be non-negative", {"edge_weight": -torch.ones(60)}),
        (ValueError, r"'batch' to have shape \[12\]", {"batch": torch.zeros(3, dtype=torch.long)}),
        (TypeError, "'batch' to be a tensor.*tuple", {"batch": fields_of(0, 0)}),  # fields in its place
        (
            ValueError,
            r"'field_weight' to have shape .*\[4, 7\].*\[4, 3\]",
            {"fields": (torch.zeros(2, 4).long(), torch.ones(4, 3))},
        ),
        (TypeError, "'fields' to be a pair .*Tensor", {"fields": torch.zeros(2, 4).long()}),
        (ValueError, r"'field_index' to have shape", {"fields": (torch.zeros(4).long(), torch.ones(4, 7))}),
        (ValueError, r"row 0 of 'field_index' to lie in \[0, 11\] \(got 0 to 12\); are these", {"fields": fields_of(12, 0)}),
        (ValueError, r"row 1 of 'field_index' to lie in \[0, 11\] \(got -1 to 0\); are these", {"fields": fields_of(0, -1)}),
        (TypeError, "unexpected keyword argument 'edge_attr'", {"edge_attr": torch.ones(60)}),
    ],
)
def test_bad_input(error, message, arguments):
    data = random_graph(dtype=torch.float32)
    with pytest.raises(error, match=message):
        GICConv(5, 6)(**{"x": data.x, "edge_index": data.edge_index} | arguments)
