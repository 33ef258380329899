"""Features of edges: members of a field are edges then."""

import copy

import pytest
import torch
from torch_geometric.data import Batch, Data

from torch_gic import GIC, GICConv, GICNet, receptive_fields
from torch_gic.encoding import describe, gaussian_encode
from torch_gic.fields import Fields, bipartite_fields, edge_fields

NODES, EDGES, DIM = 9, 30, 3


def graph(seed=0, num_nodes=NODES, num_edges=EDGES, dtype=torch.float64):
    """Directed, with parallel edges, loops and nodes without edges."""
    generator = torch.Generator().manual_seed(seed)
    return Data(
        x=torch.randn(num_nodes, 4, generator=generator, dtype=dtype),
        edge_index=torch.randint(max(num_nodes - 1, 1), (2, num_edges), generator=generator),
        edge_weight=torch.rand(num_edges, generator=generator, dtype=dtype),
        edge_attr=torch.randn(num_edges, DIM, generator=generator, dtype=dtype),
    )


def layer(**kwargs):
    """In evaluation mode, with statistics of a training batch."""
    torch.manual_seed(1)
    conv, data = GICConv(4, 6, edge_dim=DIM, hidden_channels=5, **kwargs).double(), graph(7)
    conv(data.x, data.edge_index, edge_attr=data.edge_attr)
    return conv.eval()


def run(conv, data):
    return conv(data.x, data.edge_index, data.edge_weight, edge_attr=data.edge_attr)


def normalised(values, norm):
    mean, deviation, weight = norm.running
    z = (values - mean / weight) / (deviation / weight)
    return z / (1 + (z / 5).square()).sqrt()


def units(values, clamp):
    """Without outliers, whose length is ordinary, so that a clamp leaves them as they are."""
    return values / (clamp.running[1] / clamp.running[2])


def test_parallel_edges_weigh_as_much_as_their_pair():
    data = graph()
    of_edges = edge_fields(data.edge_index, data.edge_weight, size=NODES)
    pairs = receptive_fields(data.edge_index, data.edge_weight, num_nodes=NODES)
    bipartite = bipartite_fields(data.edge_index, data.edge_weight, size=(NODES, NODES))
    other = edge_fields(data.edge_index, data.edge_weight, size=(NODES, NODES))
    for own, expected in ((of_edges, pairs), (other, bipartite)):
        dense = torch.zeros(2, NODES, NODES, dtype=torch.float64)
        edge, node = own.index
        assert torch.equal(data.edge_index[1, edge], node)
        assert (own.num_sources, own.num_nodes) == (EDGES, NODES)
        dense[0].index_put_((node, data.edge_index[0, edge]), own.weight[:, 0], accumulate=True)
        dense[1].index_put_((expected.index[1], expected.index[0]), expected.weight[:, 0])
        torch.testing.assert_close(dense[0], dense[1])


@pytest.mark.parametrize("root_weight", [True, False])
def test_forward_is_what_the_docstring_says(root_weight):
    data, conv = graph(), layer(root_weight=root_weight)
    projection, mixture = conv.filter.projection, conv.filter.mixture
    source, target = data.edge_index
    v = normalised(
        (units(data.x, projection.clamp) @ projection.lin.weight.t())[source]
        + units(data.edge_attr, projection.clamp_edge) @ projection.lin_edge.weight.t(),
        projection.norm,
    )
    degree = torch.zeros(NODES, dtype=torch.float64).index_add(0, target, data.edge_weight)
    weight = data.edge_weight / torch.where(degree > 0, degree, 1)[source]
    order = target.argsort(stable=True)
    rowptr = torch.cat([torch.zeros(1).long(), torch.bincount(target, minlength=NODES).cumsum(0)])
    fields = Fields(torch.stack([order, target[order]]), weight[order, None], rowptr, EDGES)
    encoding, masses = gaussian_encode(v, mixture.mu, mixture.sigma, mixture.pi.log(), fields, 8 * fields.weight)
    terms = describe(encoding, masses, mixture.sigma).flatten(1) @ conv.filter.lin.weight.t()
    if root_weight:
        mass = torch.zeros(NODES, dtype=torch.float64).index_add(0, target, weight).clamp(min=1e-12)
        values = torch.cat([data.x[source] @ conv.linear.mean.weight.t(), data.edge_attr @ conv.linear.edge.weight.t()], dim=1)
        mean = torch.zeros(NODES, 12, dtype=torch.float64).index_add(0, target, weight[:, None] * values) / mass[:, None]
        expected = conv.linear.root(data.x) + mean[:, :6] + mean[:, 6:] + 0.1 * terms
    else:
        expected = terms + conv.filter.lin.bias
    torch.testing.assert_close(run(conv, data), expected, rtol=1e-6, atol=1e-6)
    fields = conv.fields(data.x, data.edge_index, data.edge_weight)
    given = conv(data.x, data.edge_index, edge_attr=data.edge_attr, fields=fields)
    torch.testing.assert_close(given, expected, rtol=1e-6, atol=1e-6)


def test_order_of_edges_and_nodes():
    data, conv = graph(), layer()
    out, edges, nodes = run(conv, data), torch.randperm(EDGES), torch.randperm(NODES)
    index, weight, attr = data.edge_index[:, edges], data.edge_weight[edges], data.edge_attr[edges]
    torch.testing.assert_close(conv(data.x, index, weight, edge_attr=attr), out)
    moved = conv(data.x[nodes], nodes.argsort()[index], weight, edge_attr=attr)
    torch.testing.assert_close(moved, out[nodes])


def test_gradients():
    data, conv = graph(num_nodes=4, num_edges=6), layer()
    values = [value.requires_grad_() for value in (data.x, data.edge_weight + 0.1, data.edge_attr)]
    torch.autograd.gradcheck(lambda x, weight, attr: conv(x, data.edge_index, weight, edge_attr=attr), values)
    run(conv, data).sum().backward()
    assert conv.linear.edge.weight.grad.abs().max() > 0
    assert conv.filter.projection.lin_edge.weight.grad.abs().max() > 0


def test_units_and_outliers():
    data = graph(dtype=torch.float32)
    outs = []
    for unit in (1.0, 1e4, 1e-4):
        torch.manual_seed(0)
        conv = GICConv(4, 6, edge_dim=DIM)
        outs.append(conv(data.x, data.edge_index, edge_attr=10 * unit * data.edge_attr))
        far = data.edge_attr.clone()
        far[0] = 1e20
        assert conv.eval()(data.x, data.edge_index, edge_attr=far).abs().max() < 100
    torch.testing.assert_close(outs[1], outs[0], rtol=1e-3, atol=1e-4)  # beyond the longest vectors
    assert all(out.isfinite().all() for out in outs)


def test_odd_graphs_and_vectors():
    conv = layer()
    for num_nodes, num_edges in ((2, 0), (2, 1), (2, 2)):
        data = graph(num_nodes=num_nodes, num_edges=num_edges)
        assert run(conv, data).isfinite().all()
    one, data = GICConv(-1, 6, edge_dim=1), graph(dtype=torch.float32)
    outs = [one.eval()(data.x, data.edge_index, edge_attr=attr) for attr in (data.edge_attr[:, 0], data.edge_attr[:, :1])]
    assert torch.equal(*outs)
    pair = GICConv((4, 5), 6, edge_dim=DIM)((data.x, torch.randn(NODES, 5)), data.edge_index, edge_attr=data.edge_attr)
    assert pair.shape == (NODES, 6)


@pytest.mark.parametrize(
    "model", [GIC(4, 2, edge_dim=DIM), GIC(4, 2, "C(8)-C(8)", edge_dim=DIM), GICNet(4, 8, 2, 2, edge_dim=DIM)], ids=str
)
def test_networks_see_them_and_graphs_stay_apart(model):
    graphs = [graph(seed, dtype=torch.float32) for seed in range(3)]
    batch = Batch.from_data_list(graphs)

    def out(data, attr):
        index = torch.zeros(data.num_nodes).long() if data.batch is None else data.batch
        return model(data.x, data.edge_index, batch=index, edge_attr=attr)

    out(batch, batch.edge_attr)
    model.eval()
    whole = out(batch, batch.edge_attr)
    torch.testing.assert_close(whole, torch.cat([out(data, data.edge_attr) for data in graphs]), rtol=1e-4, atol=1e-4)
    assert (whole - out(batch, -batch.edge_attr)).abs().max() > 1e-3


def test_init_from_data_and_entropy():
    data, conv = graph(), layer()
    conv.init_from_data(data.x, data.edge_index, edge_attr=data.edge_attr, num_iterations=3)
    fields = conv.fields(data.x, data.edge_index)
    assert 0 < float(conv.entropy(data.x, fields, data.edge_index, data.edge_attr)) < 1
    model = GIC(4, 2, edge_dim=DIM).double()
    before = copy.deepcopy(model.layers[0].filter.mixture.mu)
    model.init_from_data(data)
    assert not torch.equal(before, model.layers[0].filter.mixture.mu)


@pytest.mark.parametrize(
    ("message", "options", "arguments"),
    [
        (r"'edge_attr' of shape \[30, 3\] \(got None", {}, {"edge_attr": None}),
        (r"'edge_attr' to have shape \[num_edges, 3\]", {}, {"edge_attr": torch.ones(30, 2)}),
        (r"'edge_attr' to have 30 rows, one per edge \(got 29", {}, {"edge_attr": torch.ones(29, 3)}),
        ("no 'edge_attr' for a layer without 'edge_dim'", {"edge_dim": None}, {}),
        ("'edge_index' to be a tensor .* with 'edge_dim'", {}, {"edge_index": torch.eye(NODES).to_sparse()}),
        ("num_scales=1, .* with 'edge_dim'.*num_scales=2", {"num_scales": 2}, {}),
        ("'edge_dim'.*add_self_loops=True", {"add_self_loops": True}, {}),
        ("'edge_dim'.*max_neighbors=3", {"max_neighbors": 3}, {}),
        ("'hidden_channels' with 'edge_dim'", {"hidden_channels": None}, {}),
        ("'edge_dim' to be at least 1", {"edge_dim": 0}, {}),
        ("'fields' of a graph of 30 sources and 9 nodes", {}, {"fields": receptive_fields(torch.arange(9).repeat(2, 1))}),
    ],
)
def test_bad_input(message, options, arguments):
    data = graph(dtype=torch.float32)
    given = {"x": data.x, "edge_index": data.edge_index, "edge_attr": data.edge_attr} | arguments
    with pytest.raises(ValueError, match=message):
        GICConv(4, 6, **{"edge_dim": DIM} | options)(**given)


def test_refused_where_they_cannot_be_right():
    data = graph(dtype=torch.float32)
    with pytest.raises(ValueError, match="no coarsening with 'edge_dim'"):
        GIC(4, 2, "C(8)-P(0.5)-C(8)-P", edge_dim=DIM)
    with pytest.raises(NotImplementedError, match="leave out 'num_seeds'"):
        GIC(4, 2, "C(8)", edge_dim=DIM)(data.x, data.edge_index, edge_attr=data.edge_attr, num_seeds=2)
    with pytest.raises(NotImplementedError, match="no inference by batches with edge features"):
        GIC(4, 2, "C(8)", edge_dim=DIM).inference(data.x, data.edge_index)
    with pytest.raises(ValueError, match="which loaders can join"):
        edge_fields(data.edge_index, size=NODES).to_dict()


def test_fields_of_nodes_are_refused():
    """Also in a graph of as many edges as nodes."""
    ring = torch.stack([torch.arange(4), torch.arange(4).roll(1)])
    x, attr = torch.randn(4, 4), torch.randn(4, DIM)
    with pytest.raises(ValueError, match="made with edges as members, as this layer's"):
        GICConv(4, 6, edge_dim=DIM)(x, ring, edge_attr=attr, fields=receptive_fields(ring))
    with pytest.raises(ValueError, match="got edges as members"):
        GICConv(4, 6)(x, ring, fields=edge_fields(ring, size=4))


@pytest.fixture
def forgetful():
    """What is compiled here counts among the variants that another test may compile of the same function."""
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.usefixtures("forgetful")
def test_compiles_without_a_break():
    data, conv = graph(dtype=torch.float32), layer().float()
    explanation = torch._dynamo.explain(conv)(data.x, data.edge_index, edge_attr=data.edge_attr)
    assert explanation.graph_count == 1
    out = torch.compile(conv, backend="aot_eager")(data.x, data.edge_index, edge_attr=data.edge_attr)
    torch.testing.assert_close(out, conv(data.x, data.edge_index, edge_attr=data.edge_attr), rtol=1e-3, atol=1e-4)
