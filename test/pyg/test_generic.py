"""What PyG does with any layer and any model, it does with these."""

import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.nn import (
    DeepGCNLayer,
    DirGNNConv,
    GPSConv,
    HeteroConv,
    Sequential,
    summary,
    to_hetero,
    to_hetero_with_bases,
)
from torch_geometric.testing import assert_module

from torch_gic import GIC, GaussianAggregation, GICConv, GICNet, VIGMMPool

EDGES = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])


def hetero():
    data = HeteroData()
    data["paper"].x, data["author"].x = torch.randn(6, 8), torch.randn(4, 5)
    for kind in (("paper", "cites", "paper"), ("author", "writes", "paper"), ("paper", "written_by", "author")):
        sizes = data[kind[0]].num_nodes, data[kind[2]].num_nodes
        data[kind].edge_index = torch.stack([torch.randint(size, (12,)) for size in sizes])
    return data


def trains(out, model):
    sum(value.square().sum() for value in out.values()).backward() if isinstance(out, dict) else out.square().sum().backward()
    grads = [parameter.grad for parameter in model.parameters()]
    assert any(grad is not None and bool((grad != 0).any()) for grad in grads)
    assert all(grad is None or bool(grad.isfinite().all()) for grad in grads)


@pytest.mark.parametrize(
    "kwargs", [{}, {"num_scales": 3}, {"hidden_channels": None}, {"root_weight": False, "num_components": 1}]
)
def test_as_every_module(kwargs):
    """The result does not depend on the order of edges, nor on the kind of matrix they are in."""
    torch.manual_seed(0)
    conv = GICConv(8, 16, **kwargs).eval()
    assert str(conv).startswith("GICConv(8, 16")
    assert_module(conv, torch.randn(4, 8), EDGES, expected_size=(4, 16))


@pytest.mark.parametrize("kwargs", [{}, {"hidden_channels": None, "num_components": 1}])
def test_as_every_aggregation(kwargs):
    """Like those of PyG: by index and by pointers, and of no element."""
    torch.manual_seed(0)
    aggr = GaussianAggregation(8, **kwargs).eval()
    x, index = torch.randn(6, 8), torch.tensor([0, 0, 1, 1, 1, 3])
    out = aggr(x, index)
    assert out.shape == (4, 8)
    torch.testing.assert_close(aggr(x, ptr=torch.tensor([0, 2, 5, 5, 6])), out)
    torch.testing.assert_close(aggr(x.flip(0), index.flip(0), dim_size=4), out)
    assert aggr(x[:0], index[:0], dim_size=2).shape == (2, 8)


def test_to_hetero():
    data = hetero()
    model = to_hetero(GICNet((-1, -1), 16, 2, 3, norm="batch_norm", act="elu", dropout=0.5), data.metadata())
    out = model(data.x_dict, data.edge_index_dict)
    assert {kind: list(value.shape) for kind, value in out.items()} == {"paper": [6, 3], "author": [4, 3]}
    trains(out, model)


def test_to_hetero_with_jumping_knowledge_and_weights():
    data = hetero()
    model = to_hetero(GICNet((-1, -1), 16, 2, 3, jk="cat"), data.metadata())
    weights = {kind: torch.rand(12) for kind in data.edge_types}
    model(data.x_dict, data.edge_index_dict)
    model.eval()
    with_weights = model(data.x_dict, data.edge_index_dict, weights)
    assert not torch.allclose(with_weights["paper"], model(data.x_dict, data.edge_index_dict)["paper"])


def test_to_hetero_with_bases_weighs_messages_which_there_are_none_of():
    model = GICNet(8, 16, 2, 3)
    with pytest.raises(NotImplementedError, match="sends no messages, and would never call this hook"):
        to_hetero_with_bases(model, hetero().metadata(), num_bases=3, in_channels={"x": 8})


def test_to_hetero_with_loops():
    model = GICNet((-1, -1), 16, 2, add_self_loops=True)
    with pytest.raises(ValueError, match="'add_self_loops' attribute set to 'True'"):  # PyG says it
        to_hetero(model, hetero().metadata())


def test_layers_of_samples_of_two_kinds_are_not_trimmed():
    data = hetero()
    model = to_hetero(GICNet((-1, -1), 16, 2), data.metadata())
    nodes, edges = {kind: [2, 1, 1] for kind in data.node_types}, {kind: [2, 1] for kind in data.edge_types}
    with pytest.raises(NotImplementedError, match="not trimmed between two sets of nodes"):
        model(data.x_dict, data.edge_index_dict, num_sampled_nodes_per_hop=nodes, num_sampled_edges_per_hop=edges)


@pytest.mark.parametrize("aggr", ["sum", "mean", "cat", None])
def test_hetero_conv(aggr):
    data = hetero()
    conv = HeteroConv({kind: GICConv((-1, -1), 6, add_self_loops=False) for kind in data.edge_types}, aggr=aggr)
    out = conv(data.x_dict, data.edge_index_dict)
    assert out["author"].shape == ((4, 1, 6) if aggr is None else (4, 6))
    assert out["paper"].shape == {"cat": (6, 12), None: (6, 2, 6)}.get(aggr, (6, 6))


def test_gps():
    conv = GPSConv(16, GICConv(16, 16), heads=4)
    out = conv(torch.randn(4, 16), EDGES, torch.tensor([0, 0, 1, 1]))
    assert out.shape == (4, 16)
    trains(out, conv.conv)


@pytest.mark.parametrize("block", ["res+", "res", "dense", "plain"])
@pytest.mark.parametrize("ckpt_grad", [False, True])
def test_deep_gcn(block, ckpt_grad):
    torch.manual_seed(0)
    layer = DeepGCNLayer(GICConv(8, 8), torch.nn.LayerNorm(8), torch.nn.ReLU(), block, dropout=0.0, ckpt_grad=ckpt_grad)
    out = layer(torch.randn(4, 8, requires_grad=True), EDGES)
    assert out.shape == (4, 16 if block == "dense" else 8)
    trains(out, layer)


@pytest.mark.parametrize("root_weight", [False, True])
def test_dir_gnn(root_weight):
    torch.manual_seed(0)
    conv = DirGNNConv(GICConv(8, 16), alpha=0.3, root_weight=root_weight).eval()
    x, directed = torch.randn(4, 8), EDGES[:, ::2]
    out = conv(x, directed)
    assert out.shape == (4, 16)
    forward, backward = conv.conv_in(x, directed), conv.conv_out(x, directed.flip(0))
    expected = 0.7 * forward + 0.3 * backward
    torch.testing.assert_close(out, expected + conv.lin(x) if root_weight else expected)


def test_sequential():
    model = Sequential(
        "x, edge_index, batch",
        [
            (GICConv(8, 16), "x, edge_index -> x"),
            torch.nn.ReLU(),
            (VIGMMPool(16, 0.5), "x, edge_index, None, batch -> x, edge_index, edge_weight, batch, select"),
            (GICConv(16, 4), "x, edge_index, edge_weight -> x"),
        ],
    )
    assert model(torch.randn(4, 8), EDGES, torch.tensor([0, 0, 0, 0])).shape == (2, 4)


@pytest.mark.parametrize(
    ("model", "output"),
    [(GICNet(8, 16, 2, 3), "[4, 3]"), (GIC(8, 3, "C(16)-P(0.5)-C(16)-P"), "[1, 3]"), (GICConv(8, 16), "[4, 16]")],
)
def test_summary(model, output):
    text = summary(model, torch.randn(4, 8), EDGES)
    assert output in text
    assert f"{sum(parameter.numel() for parameter in model.parameters()):,}" in text


def test_summary_of_the_parts():
    assert "GaussianMixture" in summary(GICConv(8, 16), torch.randn(4, 8), EDGES, leaf_module=None, max_depth=5)


def test_explain():
    torch.manual_seed(0)
    data = Data(x=torch.randn(4, 8), edge_index=EDGES)
    model = GICNet(8, 16, 2, 3).eval()
    task = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}
    masks = {"node_mask_type": "attributes", "edge_mask_type": "object"}
    explainer = Explainer(model, GNNExplainer(epochs=3), "model", task, **masks)
    explanation = explainer(data.x, data.edge_index, index=0)
    assert explanation.edge_mask.shape == (6,)
    assert explanation.edge_mask.max() > 0
    assert explanation.node_mask.max() > 0


def test_a_pair_of_sources_alone():
    with pytest.raises(TypeError, match=r"a tensor or a pair of tensors .x_src, x_dst. .got .Tensor, NoneType.."):
        GICConv((8, 8), 16, add_self_loops=False)((torch.randn(4, 8), None), EDGES)


@pytest.mark.parametrize("name", ["flow", "aggr", "node_dim", "decomposed_layers"])
def test_settings_of_message_passing_that_would_do_nothing(name):
    with pytest.raises(TypeError, match=name):
        GICConv(8, 16, **{name: "target_to_source"})


def test_sparse_features():
    with pytest.raises(TypeError, match="'x' to be dense"):
        GICConv(4, 16)(torch.eye(4).to_sparse(), EDGES)
