import copy

import pytest
import torch
from conftest import ODD_GRAPHS, odd_graph, permute, random_graph
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

from torch_gic import GIC, GICConv, ReceptiveFields, VIGMMPool
from torch_gic.encoding.normalize import soft_bound
from torch_gic.nn.models.architecture import Layer, parse_architecture

PAPER = "C(64)-P(0.25)-C(128)-P(0.25)-C(256)-P-FC(256)"
SMALL = "C(8)-P(0.5)-C(6)-P-FC(7)"


def network(architecture=SMALL, **kwargs):
    torch.manual_seed(0)
    return GIC(5, 3, architecture, **{"num_scales": 2, "num_components": 3, "hidden_channels": 4} | kwargs).double()


def test_notation():
    expected = [("C", 64), ("P", 0.25), ("C", 128), ("P", 0.25), ("C", 256), ("P", None), ("FC", 256)]
    assert parse_architecture(PAPER) == [Layer(*layer) for layer in expected]
    assert parse_architecture(" C(3) - P ") == [Layer("C", 3), Layer("P", None)]
    assert parse_architecture("P-FC(2)") == [Layer("P", None), Layer("FC", 2)]


def test_components_of_each_convolution():
    model = network(num_components=(5, 1))
    assert [layer.num_components for layer in model.layers if isinstance(layer, GICConv)] == [5, 1]
    assert [readout.encode.num_components for readout in model.readouts] == [5, 1]
    with pytest.raises(ValueError, match=r"'num_components' .* a list of 2, one per convolution \(got \[5, 1, 1\]\)"):
        network(num_components=[5, 1, 1])
    with pytest.raises(ValueError, match="'num_components' to be at least 1"):
        network(num_components=(5, 0))


@pytest.mark.parametrize(
    ("architecture", "message"),
    [
        ("", "layer 1 .* to be C"),
        ("C(64)-X(3)", r"layer 2 .* \(got 'X\(3\)'\)"),
        ("C(64)--P", "layer 2 .*got ''"),
        ("C(6.5)-P", r"layer 1 .*got 'C\(6.5\)'"),
        ("C-P", "layer 1 .*got 'C'"),
        ("C(-3)-P", r"layer 1 .*got 'C\(-3\)'"),
        ("C(0)-P", "channels"),
        ("C(4)-P(1.5)-P", r"a ratio in \(0, 1\] .*P\(1.5\)"),
        ("C(4)-P(0)-P", "a ratio"),
        ("C(4)-P(0.5)-FC(3)", "end its coarsening with a P"),
        ("C(4)-P-C(3)", "to be FC"),
        ("FC(4)-C(3)", "before every FC"),
    ],
)
def test_bad_notation(architecture, message):
    with pytest.raises(ValueError, match=message):
        GIC(5, 2, architecture)


def test_the_default_network_does_not_coarsen():
    model = GIC(39, 2)
    assert str(model) == "GIC(39, 2, 'C(64)-C(64)-C(64)-P-FC(64)')"
    assert not [m for m in model.layers if isinstance(m, VIGMMPool)]


def test_the_layers_of_the_paper():
    model = GIC(39, 2, PAPER.replace("0.25", "0.5"))
    widths = [(m.in_channels, m.out_channels) for m in model.layers if isinstance(m, GICConv)]
    assert widths == [(39, 64), (64, 128), (128, 256)]
    assert [m.select.ratio for m in model.layers if isinstance(m, VIGMMPool)] == [0.5, 0.5]
    assert [(m.in_channels, m.out_channels) for m in model.classifier] == [(3 * (64 + 128 + 256), 256), (256, 2)]
    for conv in (m for m in model.layers if isinstance(m, GICConv)):
        assert (conv.num_scales, conv.num_components, conv.hidden_channels) == (1, 5, 16)
        assert conv.linear is not None


def test_the_network_as_printed():
    printed = GIC.as_printed(39, 2)
    for conv in (m for m in printed.layers if isinstance(m, GICConv)):
        assert (conv.num_scales, conv.num_components, conv.hidden_channels) == (7, 7, None)
        assert conv.linear is None
        assert not conv.log_scale.requires_grad
        assert torch.equal(conv.log_scale, torch.zeros(7))
    assert printed.layers[0].filter.lin.weight.numel() == 244_608
    assert str(printed) == f"GIC(39, 2, {PAPER!r})"
    assert [(m.select.ratio, m.select.affinity) for m in printed.layers if isinstance(m, VIGMMPool)] == [
        (0.25, "laplacian")
    ] * 2
    assert [(m.in_channels, m.out_channels) for m in printed.classifier] == [(256, 256), (256, 2)]
    small = GIC.as_printed(5, 2, architecture=SMALL, num_scales=2, num_components=(3, 1))
    data = random_graph(dtype=torch.float32)
    assert small(data.x, data.edge_index).shape == (1, 2)
    assert [m.num_components for m in small.layers if isinstance(m, GICConv)] == [3, 1]


@pytest.mark.parametrize("readout", ["all", "last"])
def test_readout(graphs, readout):
    _, batch = graphs
    model, seen = network("C(8)-P(0.5)-C(6)-P", readout=readout).eval(), []
    for module in (model.layers[1], model.layers[2], model.classifier[0]):
        module.register_forward_hook(lambda _, inputs, output: seen.append((inputs, output)))
    model(batch.x, batch.edge_index, batch.edge_weight, batch.batch)
    (fine, coarse), (_, x), ((vector,), _) = seen  # the coarsening, the last convolution, the classifier
    last = soft_bound(model.norms[2](x), 10.0).relu()
    for g in range(4):
        levels = [fine[0][fine[3] == g], last[coarse.batch == g]]
        if readout == "last":
            torch.testing.assert_close(vector[g], levels[1].amax(0))
            continue
        parts = []
        for level, read in zip(levels, model.readouts, strict=True):
            encoding = soft_bound(read.norm(read.encode(level)), 10.0).relu()[0]
            parts += [level.amax(0), level.mean(0), encoding]
        torch.testing.assert_close(vector[g], torch.cat(parts))


def test_unknown_readout():
    with pytest.raises(ValueError, match=r"'readout' to be one of.*'sum'"):
        network(readout="sum")


def test_graph_and_node_level(graphs):
    _, batch = graphs
    assert network()(batch.x, batch.edge_index, batch.edge_weight, batch.batch).shape == (4, 3)
    assert network("C(8)-C(6)-FC(7)")(batch.x, batch.edge_index, batch.edge_weight).shape == (batch.num_nodes, 3)
    assert network()(batch.x, batch.edge_index).shape == (1, 3)


def test_batch_equals_its_graphs_in_any_order_of_nodes(graphs):
    parts, batch = graphs
    model = network().eval()
    out = model(batch.x, batch.edge_index, batch.edge_weight, batch.batch)
    for number, part in enumerate(parts):
        torch.testing.assert_close(model(part.x, part.edge_index, part.edge_weight)[0], out[number], rtol=1e-6, atol=1e-6)
    data = Data(x=batch.x, edge_index=batch.edge_index, edge_weight=batch.edge_weight, batch=batch.batch)
    moved, _ = permute(data)
    torch.testing.assert_close(model(moved.x, moved.edge_index, moved.edge_weight, moved.batch), out, rtol=1e-6, atol=1e-6)


def test_exported(graphs, tmp_path):
    """One program for graphs of any size and number, also from a file."""
    _, batch = graphs
    model = network("C(8)-P(0.5)-C(6)-P(0.5)-C(6)-P-FC(7)").eval()
    n, e = torch.export.Dim("n"), torch.export.Dim("e")
    program = torch.export.export(
        model, (batch.x, batch.edge_index, batch.edge_weight, batch.batch), dynamic_shapes=({0: n}, {1: e}, {0: e}, {0: n})
    )
    torch.export.save(program, tmp_path / "gic.pt2")
    program = torch.export.load(tmp_path / "gic.pt2").module()
    others = Batch.from_data_list([random_graph(n, 3 * n, seed=n) for n in (7, 30, 1, 1, 18)])
    for data in (batch, others):
        inputs = data.x, data.edge_index, data.edge_weight, data.batch
        torch.testing.assert_close(program(*inputs), model(*inputs))
    without_edges = batch.x, batch.edge_index[:, :0], batch.edge_weight[:0], batch.batch
    torch.testing.assert_close(program(*without_edges), model(*without_edges))


def test_loader_with_stored_fields_and_empty_graphs():
    names = ["two parts", "empty", "star", "one node", "empty"]
    data = [ReceptiveFields(2)(odd_graph(name)) for name in names]
    batch = next(iter(DataLoader(data, batch_size=5)))
    model = network().eval()
    out = model(batch.x, batch.edge_index, batch.edge_weight, batch.batch, batch_size=5, fields=batch.fields)
    assert out.shape == (5, 3)
    torch.testing.assert_close(out[1], out[4])
    torch.testing.assert_close(model(batch.x, batch.edge_index, batch.edge_weight, batch.batch, batch_size=5), out)


@pytest.mark.parametrize("training", [True, False])
def test_odd_graphs_alone_and_together(training):
    model = network().train(training)
    for name in ODD_GRAPHS:
        data = odd_graph(name)
        assert bool(torch.isfinite(model(data.x, data.edge_index, data.edge_weight)).all()), name
    batch = Batch.from_data_list([odd_graph(name) for name in ODD_GRAPHS])
    out = model(batch.x, batch.edge_index, batch.edge_weight, batch.batch, batch_size=len(ODD_GRAPHS))
    assert out.shape == (len(ODD_GRAPHS), 3)
    out.square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(torch.isfinite(parameter.grad).all()), name


def test_options_copies_and_state(graphs):
    _, batch = graphs
    arguments = (batch.x, batch.edge_index, batch.edge_weight, batch.batch)
    model = network(dropout=0.5).eval()
    out = model(*arguments)
    assert torch.equal(copy.deepcopy(model)(*arguments), out)
    other = network(dropout=0.5).eval()
    other.reset_parameters()
    assert not torch.equal(other(*arguments), out)
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(*arguments), out)
    assert not torch.equal(model.train()(*arguments), model(*arguments))  # dropout
    for options in (
        {"norm": None},
        {"norm": "layer_norm"},
        {"pool_kwargs": {"affinity": "laplacian"}},
        {"max_neighbors": 3},
        {"act": "elu"},
    ):
        assert network(**options)(*arguments).shape == (4, 3)
    lazy = GIC(-1, 3, SMALL, num_scales=2, num_components=3).double()
    assert lazy(*arguments).shape == (4, 3)
    with pytest.raises(ValueError, match=r"'dropout' to be in .*2.0"):
        network(dropout=2.0)
    with pytest.raises(TypeError, match=r"'edge_weight' to be floating point \(got torch.int64\).*batch="):
        model(batch.x, batch.edge_index, batch.batch)
    with pytest.raises(TypeError, match=r"'architecture' to be a str \(got list"):
        network(["C(3)"])
    with pytest.raises(TypeError, match="unexpected keyword argument 'hidden'"):
        network(hidden=3)


def test_learns_a_small_task():
    generator = torch.Generator().manual_seed(0)
    graphs = []
    for label in (0, 1) * 20:  # neighbours spread narrowly or widely around zero
        ring = torch.stack([torch.arange(10), torch.arange(1, 11) % 10])
        x = (1 + 2 * label) * torch.randn(10, 1, generator=generator)
        graphs.append(Data(x=x, edge_index=torch.cat([ring, ring.flip(0)], dim=1), y=torch.tensor([label])))
    batch = Batch.from_data_list(graphs)
    torch.manual_seed(0)
    model = GIC(1, 2, "C(8)-P(0.5)-C(8)-P-FC(8)", num_scales=2, num_components=3)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(30):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(batch.x, batch.edge_index, batch=batch.batch), batch.y)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.2
