"""torch.compile with its default settings: layers and models in one piece, whatever the size."""

import copy

import pytest
import torch
from torch_geometric.nn import global_mean_pool

from torch_gic import GIC, GICConv, GICNet, VIGMMPool

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of the compiler itself
SIZES = [(20, 50), (33, 80), (7, 13), (40, 0), (1, 0), (1, 1), (2, 1)]  # nodes and edges


class Pooled(torch.nn.Module):
    """As users write it. PyG's readouts break the graph, unless they know the number of graphs."""

    def __init__(self, batch_size=1, **kwargs):
        super().__init__()
        self.conv1, self.pool, self.conv2 = GICConv(8, 16), VIGMMPool(16, 0.5, **kwargs), GICConv(16, 8)
        self.lin, self.batch_size = torch.nn.Linear(8, 2), batch_size

    def forward(self, x, edge_index, batch=None):
        x = self.conv1(x, edge_index).relu()
        x, edge_index, edge_weight, batch, _ = self.pool(x, edge_index, batch=batch)
        return self.lin(global_mean_pool(self.conv2(x, edge_index, edge_weight).relu(), batch, self.batch_size))


MODELS = {
    "one scale": lambda: GICConv(8, 16),
    "scales": lambda: GICConv(8, 16, num_scales=3, max_neighbors=4),
    "as printed": lambda: GICConv(8, 16, hidden_channels=None, root_weight=False),
    "pair": lambda: GICConv((8, 8), 16, add_self_loops=False),
    "GICNet": lambda: GICNet(8, 16, 2, 3, norm="batch_norm", jk="cat"),
    "GIC of nodes": lambda: GIC(8, 3, "C(8)-C(8)"),
    "GIC": lambda: GIC(8, 3, "C(8)-P-FC(8)", readout="last"),
    "pooled": Pooled,
    "no loops": lambda: Pooled(remove_self_loops=True),
    "soft": lambda: Pooled(soft=True),
    "GIC with pooling": lambda: GIC(8, 3, "C(8)-P(0.5)-C(8)-P", norm=None),
}


@pytest.fixture(autouse=True)
def _forgets():
    """What one test has compiled is nothing to the next."""
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def graph(num_nodes, num_edges):
    generator = torch.Generator().manual_seed(num_nodes)
    return torch.randn(num_nodes, 8, generator=generator), torch.randint(num_nodes, (2, num_edges), generator=generator)


def make(name):
    torch.manual_seed(0)
    return MODELS[name]()


def agree(model, sizes, name="", **settings):
    """Compiled and not, with sizes that change; and with gradients."""
    plain = copy.deepcopy(model)
    compiled = torch.compile(model, **settings)
    for size in sizes:
        x, edge_index = graph(*size)
        x = (x, x + 1) if name == "pair" else x
        out, expected = compiled(x, edge_index), plain(x, edge_index)
        torch.testing.assert_close(out, expected, rtol=1e-3, atol=1e-4)
        for each in (out, expected):
            each.square().sum().backward()
    for one, other in zip(model.buffers(), plain.buffers(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
    for one, other in zip(model.parameters(), plain.parameters(), strict=True):
        assert (one.grad is None) == (other.grad is None)
        if one.grad is not None:
            assert (one.grad - other.grad).norm() <= 1e-3 * other.grad.norm() + 1e-3


@pytest.mark.parametrize("name", MODELS)
def test_no_break(name):
    x, edge_index = graph(20, 50)
    explanation = torch._dynamo.explain(make(name))((x, x + 1) if name == "pair" else x, edge_index)
    assert explanation.break_reasons == []
    assert explanation.graph_count == 1


def test_no_break_in_a_batch():
    """The number of graphs is that of the values in the batch vector."""
    x, batch = graph(20, 0)[0], torch.arange(20) // 7
    edge_index = torch.stack([torch.arange(19), torch.arange(1, 20)])[:, batch[:-1] == batch[1:]]
    for model in (Pooled(batch_size=3), GIC(8, 3, "C(8)-P(0.5)-C(8)-P", norm=None).eval()):
        explanation = torch._dynamo.explain(model)(x, edge_index, batch=batch)
        assert explanation.break_reasons == []
        out = torch.compile(model.eval(), backend="aot_eager", fullgraph=True)(x, edge_index, batch=batch)
        torch.testing.assert_close(out, model(x, edge_index, batch=batch), rtol=1e-3, atol=1e-4)


def test_pooling_in_training():
    """With as few clusters as one, of which no statistics are taken. The running statistics are those of the plain model."""
    torch.manual_seed(0)
    agree(Pooled(), [(20, 50), (33, 80), (2, 1), (1, 0)], backend="aot_eager", dynamic=True)


def test_any_size():
    agree(make("one scale").eval(), SIZES, dynamic=True, backend="aot_eager")


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", MODELS)
def test_any_size_of_every_model(name, dynamic):
    agree(make(name).eval(), SIZES, name, dynamic=dynamic)


def test_default_backend():
    agree(make("one scale"), [(20, 50), (9, 0)])


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"batch_size": None}, {"affinity": "laplacian"}])
def test_a_model_that_breaks(settings):
    """Where PyG's readout counts graphs, and in the gradient of the printed affinity."""
    torch.manual_seed(0)
    agree(Pooled(**settings), [(20, 50), (33, 80)], backend="aot_eager")


def test_clusters_given_ahead():
    """Their values are looked at, around which the graph breaks."""
    pool, (x, edge_index) = VIGMMPool(8, 0.5), graph(20, 50)
    cluster = torch.arange(20) // 2
    out = torch.compile(pool, backend="aot_eager")(x, edge_index, cluster=cluster)
    assert torch.equal(out.edge_index, pool(x, edge_index, cluster=cluster).edge_index)
    with pytest.raises(ValueError, match="every cluster up to the highest to have a node"):
        torch.compile(pool, backend="aot_eager")(x, edge_index, cluster=2 * cluster)


def test_wrong_values_behind_a_break_less_model():
    """The operations look at them."""
    compiled, (x, edge_index) = torch.compile(VIGMMPool(8, 0.5), backend="aot_eager"), graph(20, 50)
    wrong = (torch.arange(20) // 10, "stay inside one graph"), (torch.full((20,), 10**9), "number graphs from 0 on")
    for batch, match in wrong:
        with pytest.raises((ValueError, RuntimeError), match=match):
            compiled(x, edge_index, batch=batch)


def test_weights_that_are_learnt():
    """Inductor made C++ of the reference that did not compile."""
    conv, (x, edge_index) = make("one scale").eval(), graph(20, 50)
    weight = torch.rand(50, requires_grad=True)
    compiled = torch.compile(conv)
    grads = [torch.autograd.grad(model(x, edge_index, weight).square().sum(), weight)[0] for model in (compiled, conv)]
    torch.testing.assert_close(*grads, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("value", [-1.0, float("nan")])
def test_wrong_weights(value, requires_grad):
    compiled = torch.compile(make("one scale"), backend="eager")
    x, edge_index = graph(20, 50)
    weight = torch.ones(50)
    weight[3] = value
    with pytest.raises((ValueError, RuntimeError), match="weight' to be finite and non-negative"):
        compiled(x, edge_index, weight.requires_grad_(requires_grad))


def test_sparse_matrices():
    """Weights that are a view of a sparse matrix made the compiler fail."""
    conv, (x, edge_index) = make("one scale").eval(), graph(20, 50)
    matrix = torch.sparse_coo_tensor(edge_index.flip(0), torch.rand(50), (20, 20)).coalesce()
    out = torch.compile(conv, backend="aot_eager")(x, matrix)
    torch.testing.assert_close(out, conv(x, matrix), rtol=1e-3, atol=1e-4)
