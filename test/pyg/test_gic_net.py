"""GICNet is one of PyG's basic networks: same arguments, same call; on large graphs right, or refused."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn.models import GIN
from torch_geometric.nn.models.basic_gnn import BasicGNN
from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE, SparseTensor

from torch_gic import GICNet, receptive_fields, walk_counts

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
needs_sampler = pytest.mark.skipif(not WITH_PYG_LIB and not WITH_TORCH_SPARSE, reason="no sampler of PyG here")


def graph(num_nodes=60, num_edges=200):
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(num_nodes, (2, num_edges), generator=generator)
    return Data(x=torch.randn(num_nodes, 8, generator=generator), edge_index=edge_index)


def trained(data, **kwargs):
    """In evaluation, with statistics of the normalisations that are not those of a fresh network."""
    torch.manual_seed(0)
    model = GICNet(8, 16, 3, 5, norm="batch_norm", dropout=0.2, **kwargs)
    model(data.x, data.edge_index)
    return model.eval()


@pytest.mark.parametrize("out_channels", [None, 7])
@pytest.mark.parametrize("jk", [None, "last", "cat", "max", "lstm"])
@pytest.mark.parametrize("norm", [None, "batch_norm", torch.nn.LayerNorm(16)])
@pytest.mark.parametrize("act", [None, "leaky_relu", torch.relu_, F.elu])
def test_every_option(out_channels, jk, norm, act):
    """In the place of GIN in one word."""
    x = torch.randn(3, 8)
    for act_first in (False, True):
        model, other = (
            cls(8, 16, 3, out_channels, dropout=0.5, act=act, act_first=act_first, norm=norm, jk=jk) for cls in (GICNet, GIN)
        )
        assert isinstance(model, BasicGNN)
        assert str(model) == str(other).replace("GIN", "GICNet")
        out = model(x, EDGES)
        assert out.shape == other(x, EDGES).shape
        out.sum().backward()
        assert model.convs[0].filter.lin.weight.grad.abs().max() > 0


@pytest.mark.parametrize("jk", [None, "cat"])
@pytest.mark.parametrize("act_first", [False, True])
def test_computes_what_a_basic_network_does(jk, act_first):
    """With fields of its own in every layer, instead of one for all."""
    data = graph()
    model = trained(data, jk=jk, act_first=act_first)
    weight = torch.rand(data.num_edges)
    expected = BasicGNN.forward(model, data.x, data.edge_index, weight)
    torch.testing.assert_close(model(data.x, data.edge_index, weight), expected)
    assert not torch.allclose(model(data.x, data.edge_index), expected)


@pytest.mark.parametrize("num_layers", [1, 2])
def test_few_layers_and_unknown_sizes(num_layers):
    model = GICNet(-1, 16, num_layers, 3)
    assert model(torch.randn(3, 8), EDGES).shape == (3, 3)
    assert len(model.convs) == num_layers
    assert model.convs[0].in_channels == 8


@pytest.mark.parametrize("norm", ["BatchNorm", "GraphNorm", "InstanceNorm", "LayerNorm"])
def test_normalisations_that_see_graphs(norm):
    x, batch = torch.randn(3, 8), torch.tensor([0, 0, 1])
    model = GICNet(8, 16, 2, norm=norm).eval()
    assert model.supports_norm_batch == (norm != "BatchNorm")
    whole = model(x, EDGES, batch=batch)
    assert whole.shape == (3, 16)
    if model.supports_norm_batch:
        assert not torch.allclose(whole, model(x, EDGES))


def test_reset_copy_save_and_load(tmp_path):
    model = GICNet(8, 16, 2, 3, norm="batch_norm", jk="cat")
    x = torch.randn(3, 8)
    model(x, EDGES)
    again = copy.deepcopy(model)
    torch.save(model, tmp_path / "model.pt")
    loaded = torch.load(tmp_path / "model.pt", weights_only=False)
    for other in (again, loaded):
        torch.testing.assert_close(other.eval()(x, EDGES), model.eval()(x, EDGES))
    model.reset_parameters()
    assert not torch.equal(model.convs[0].filter.lin.weight, again.convs[0].filter.lin.weight)


@pytest.mark.filterwarnings("ignore")  # of torch.package itself
def test_packaged(tmp_path):
    model, x = GICNet(8, 16, 2, 3).eval(), torch.randn(3, 8)
    with torch.package.PackageExporter(tmp_path / "model.pt") as exporter:
        exporter.extern(["torch_geometric.**", "torch_gic.**", "_operator"])
        exporter.save_pickle("models", "model.pkl", model)
    again = torch.package.PackageImporter(tmp_path / "model.pt").load_pickle("models", "model.pkl")
    torch.testing.assert_close(again(x, EDGES), model(x, EDGES))


def test_flags_and_edge_features():
    assert GICNet.supports_edge_weight
    assert GICNet.supports_edge_attr
    with pytest.raises(ValueError, match="no 'edge_attr' for a layer without 'edge_dim'"):
        GICNet(8, 16, 2)(torch.randn(3, 8), EDGES, edge_attr=torch.randn(4, 2))


def test_unknown_arguments():
    with pytest.raises(TypeError, match="num_scale"):
        GICNet(8, 16, 2, num_scale=3)


def test_fields_given():
    data = graph()
    model = trained(data, num_scales=2)
    fields = receptive_fields(data.edge_index, num_nodes=60, num_scales=2)
    expected = model(data.x, data.edge_index)
    torch.testing.assert_close(model(data.x, data.edge_index, fields=fields), expected)
    with pytest.raises(ValueError, match="'fields' of num_scales=2"):
        model(data.x, data.edge_index, fields=receptive_fields(data.edge_index, num_nodes=60))


@needs_sampler
@pytest.mark.parametrize("jk", [None, "last", "cat", "max", "lstm"])
@pytest.mark.parametrize("num_scales", [1, 2])
@pytest.mark.parametrize("batch_size", [7, 1000])
def test_inference(jk, num_scales, batch_size):
    """That of the whole graph, which a one-hop sample of PyG could not know."""
    data = graph()
    data.edge_weight = torch.rand(data.num_edges)
    model = trained(data, jk=jk, num_scales=num_scales)
    loader = NeighborLoader(data, num_neighbors=[-1], batch_size=batch_size)
    expected = model(data.x, data.edge_index, data.edge_weight)
    torch.testing.assert_close(model.inference(loader), expected)
    torch.testing.assert_close(model.inference(loader, cache=True), expected)


@needs_sampler
def test_inference_shuffled_and_with_a_limit():
    data = graph()
    model = trained(data, max_neighbors=3)
    loader = NeighborLoader(data, num_neighbors=[-1], batch_size=16, shuffle=True)
    torch.testing.assert_close(model.inference(loader), model(data.x, data.edge_index))


@needs_sampler
def test_inference_refused():
    data = graph()
    loader = NeighborLoader(data, num_neighbors=[-1], batch_size=16)
    with pytest.raises(ValueError, match="in evaluation mode"):
        GICNet(8, 16, 2).inference(loader)
    with pytest.raises(NotImplementedError, match="normalisation over graphs"):
        GICNet(8, 16, 2, norm="GraphNorm").eval().inference(loader)
    with pytest.raises(NotImplementedError, match=r"Use GICNet\.inference"):
        GICNet(8, 16, 2).inference_per_layer(0, data.x, data.edge_index, 4)
    with pytest.raises(ValueError, match=r"all 60 nodes .got one of 3"):
        trained(data).inference(NeighborLoader(data, [-1], input_nodes=torch.arange(3)))


def sample(data, seeds):
    """The two-hop neighbourhood of the first nodes as PyG's loaders order it: by hops."""
    hops, known = [seeds], set(seeds)
    while len(hops) < 4:
        into = torch.isin(data.edge_index[1], torch.tensor(hops[-1], dtype=torch.long))
        new = sorted(set(data.edge_index[0, into].tolist()) - known)
        known |= set(new)
        hops.append(new)
    nodes = torch.tensor([node for hop in hops for node in hop])
    place = torch.full((data.num_nodes,), -1)
    place[nodes] = torch.arange(nodes.numel())
    inner = torch.isin(
        data.edge_index[1], torch.tensor([node for hop in hops[:-1] for node in hop])
    )  # edges into the last hop
    return nodes, place[data.edge_index[:, inner]], [len(hop) for hop in hops]


def test_trimmed_layers():
    """Of a sample, the seeds have the output that they have without trimming; with counts, that of the whole graph."""
    data = graph(num_edges=120)
    nodes, edge_index, sizes = sample(data, [3, 5])
    model = trained(data)
    x, counts = data.x[nodes], walk_counts(data.edge_index, num_nodes=60)
    with pytest.warns(UserWarning, match="fields of a sample"):
        out = model(x, edge_index, num_sampled_nodes_per_hop=sizes, num_sampled_edges_per_hop=[0, 0, 0])
    torch.testing.assert_close(out, model(x, edge_index)[:2])
    whole = model(data.x, data.edge_index)[[3, 5]]
    assert not torch.allclose(out, whole, rtol=1e-2)
    fields = receptive_fields(edge_index, num_nodes=nodes.numel(), walk_count=counts[nodes])
    out = model(x, edge_index, num_sampled_nodes_per_hop=sizes, fields=fields)
    torch.testing.assert_close(out, whole)


@pytest.mark.skipif(not WITH_TORCH_SPARSE, reason="no torch-sparse here")
def test_sparse_matrices():
    data = graph()
    model = trained(data)
    weight = torch.rand(data.num_edges)
    matrix = SparseTensor.from_edge_index(data.edge_index.flip(0), weight, sparse_sizes=(60, 60))
    torch.testing.assert_close(model(data.x, matrix), model(data.x, data.edge_index, weight))
