"""Pictures show what the tensors say. Whether they are clear, people have to look."""

import sys

import pytest
import torch

from torch_gic import GICConv, VIGMMPool, cluster, receptive_fields
from torch_gic.fields import edge_fields
from torch_gic.visualize import plot_clusters, plot_coarse_graph, plot_components, plot_field

pytest.importorskip("networkx")
matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

PATH = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 4, 4, 5], [1, 0, 2, 1, 3, 2, 4, 3, 5, 4]])
POS = torch.tensor([[0.0, 0], [1, 0], [2, 0], [3, 1], [4, 0], [5, 0]])


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


@pytest.fixture
def ax():
    return plt.subplots()[1]


def test_field_shows_weights(ax):
    fields = receptive_fields(PATH, num_scales=2, add_self_loops=True)
    assert plot_field(fields, node=0, scale=2, pos=POS, ax=ax) is ax
    nodes, own = ax.collections[1:3]
    expected = torch.zeros(6)
    for member, weight in zip(fields.index[0, fields.index[1] == 0], fields.weight[fields.index[1] == 0, 1], strict=True):
        expected[member] = weight
    assert torch.equal(torch.from_numpy(nodes.get_array().data).float(), expected)
    assert own.get_offsets().data.tolist() == [POS[0].tolist()]
    assert "3 members" in ax.get_title()


def test_field_takes_what_data_holds(ax):
    plot_field(receptive_fields(PATH).to_dict(), node=3, ax=ax)
    assert "2 members" in ax.get_title()


def test_field_of_a_large_graph_is_drawn_alone(ax):
    ring = torch.stack([torch.arange(1000), (torch.arange(1000) + 1) % 1000])
    pos = torch.rand(1000, 2)
    plot_field(receptive_fields(torch.cat([ring, ring.flip(0)], 1), num_scales=2), node=500, pos=pos, ax=ax)
    assert torch.equal(torch.from_numpy(ax.collections[1].get_offsets().data).float(), pos[498:503])


@pytest.mark.parametrize("features", [2, 5])
def test_components_have_ground_only_where_it_is_the_whole_input(ax, features):
    conv = GICConv(features, 4, num_components=3, num_scales=2)
    assert plot_components(conv, torch.randn(6, features), PATH, scale=2, ax=ax) is ax
    assert len(ax.images) == (features == 2)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0", "1", "2"]


def test_components_are_where_their_nodes_are(ax):
    x = torch.cat([torch.randn(3, 2), torch.randn(3, 2) + 20])
    conv = GICConv(2, 4, num_components=2)
    conv.init_from_data(x, PATH)
    with torch.no_grad():  # a component in each group, and decided
        v = conv.eval().filter.prepare(x)[1]
        conv.filter.mixture.mu[0] = torch.stack([v[:3].mean(0), v[3:].mean(0)])
        conv.log_scale.fill_(5)
    plot_components(conv, x, PATH, ax=ax)
    crosses = torch.tensor([collection.get_offsets().data[0].tolist() for collection in ax.collections[2:4]])
    assert torch.allclose(crosses, torch.stack([x[:3].mean(0), x[3:].mean(0)]), atol=1e-3)


def test_looking_changes_nothing():
    conv, x = GICConv(3, 4).train(), torch.randn(6, 3)
    before = {name: value.clone() for name, value in conv.state_dict().items()}
    plot_components(conv, x, PATH)
    assert conv.training
    assert all(module.training for module in conv.modules())
    assert all(torch.equal(value, before[name]) for name, value in conv.state_dict().items())


def test_clusters(ax):
    select = VIGMMPool(None, 2)(torch.ones(6, 1), PATH).select
    assert plot_clusters(PATH, select.cluster_index, ax=ax) is ax
    inside, between, nodes = ax.collections[:3]
    assert len(inside.get_segments()) == 4
    assert len(between.get_segments()) == 1
    colors = nodes.get_facecolors()
    assert len({tuple(color) for color in colors.tolist()}) == 2
    assert [text.get_text() for text in ax.texts] == [str(int(c)) for c in select.cluster_index]


def test_coarse_graph(ax):
    assert plot_coarse_graph(PATH, torch.tensor([0, 0, 0, 0, 1, 1]), pos=POS, ax=ax) is ax
    small, large = sorted(ax.collections[1].get_sizes())
    assert small < large
    centres = torch.from_numpy(ax.collections[1].get_offsets().data).float()
    assert torch.allclose(centres, torch.stack([POS[:4].mean(0), POS[4:].mean(0)]))


def test_graphs_without_edges_and_many_clusters(ax):
    none = torch.empty(2, 0, dtype=torch.long)
    plot_clusters(none, torch.arange(30), ax=ax)
    plot_coarse_graph(none, torch.arange(30), ax=ax)
    plot_field(receptive_fields(none, num_nodes=1), node=0, ax=ax)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot_field(receptive_fields(PATH), node=6), r"'node' to be in \[0, 5\] \(got 6\)"),
        (lambda: plot_field(receptive_fields(PATH), node=0, scale=2), r"'scale' to be in \[1, 1\] \(got 2\)"),
        (lambda: plot_components(GICConv(2, 4), torch.randn(6, 2), PATH, scale=0), r"'scale' to be in \[1, 1\] \(got 0\)"),
        (lambda: plot_components(GICConv(1, 4), torch.randn(6, 1), PATH), r"'pos', since 'x' has no two features"),
        (lambda: plot_clusters(PATH, torch.zeros(6, dtype=torch.long), pos=torch.rand(5, 2)), r"'pos' to have shape \[6, 2\]"),
        (lambda: plot_clusters(PATH, torch.tensor([0, 0, 0, 2, 2, 2])), r"'cluster' to have a node \(got none in cluster 1\)"),
        (lambda: plot_field(edge_fields(PATH, size=6), node=0), r"whose members are nodes \(got edges as members\)"),
        (lambda: plot_components(GICConv(2, 3, edge_dim=1), POS, PATH), "a layer without 'edge_dim'"),
        (lambda: plot_clusters(PATH, torch.full((6,), -1)), r"'cluster' to hold a number from 0 on per node"),
        (lambda: plot_coarse_graph(PATH, torch.zeros(6)), r"'cluster' to hold .* \(got torch.float32, \[6\]\)"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_wrong_types():
    with pytest.raises(TypeError, match="'fields' to be Fields"):
        plot_field((PATH, torch.ones(10, 1)), node=0)
    with pytest.raises(TypeError, match="'conv' to be a GICConv"):
        plot_components(torch.nn.Linear(2, 2), torch.randn(6, 2), PATH)


def test_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"torch_gic\.visualize needs matplotlib: pip install matplotlib networkx scipy"):
        plot_clusters(PATH, cluster(PATH, num_clusters=2), pos=POS)
