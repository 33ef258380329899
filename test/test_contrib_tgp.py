"""VIGMMPooling keeps the calling contract of Torch Geometric Pool."""

import pytest
import torch
from conftest import random_graph
from torch_geometric.data import Batch
from torch_geometric.nn import GCNConv

from torch_gic import VIGMMPool

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of tgp's own imports
    pytest.mark.filterwarnings("ignore:Sparse"),
]
tgp = pytest.importorskip("tgp", exc_type=ImportError)
pytest.importorskip("tgp.poolers", exc_type=ImportError)  # needs scikit-learn, which tgp does not name


@pytest.fixture
def batch():
    return Batch.from_data_list([random_graph(n, 2 * n, seed=n, dtype=torch.float32) for n in (9, 14, 6)])


def test_contract(batch):
    from tgp.poolers import get_pooler

    import torch_gic.contrib.tgp  # noqa: F401

    # What tgp's own contract test gives to every pooler; those that it does not know are dropped by tgp.
    settings = {"k": 8, "cached": True, "lift_red_op": "mean", "loss_coeff": 1.0, "reduce": "sum"}
    pooler = get_pooler("vigmm", in_channels=5, ratio=0.5, **settings).eval()
    assert "VIGMMPooling" in repr(pooler)
    assert pooler.is_sparse
    assert pooler.is_trainable
    assert not pooler.has_loss
    out = pooler(x=batch.x, adj=batch.edge_index, edge_weight=batch.edge_weight, batch=batch.batch)
    assert isinstance(out.so, tgp.select.SelectOutput)
    assert out.so.num_supernodes == out.x.size(0) == 15
    assert out.edge_weight.numel() == out.edge_index.size(1)
    assert torch.equal(torch.bincount(out.batch), torch.tensor([5, 7, 3]))
    x = GCNConv(5, 4)(out.x, out.edge_index, out.edge_weight)
    assert pooler(x=x, so=out.so, lifting=True).shape == (29, 4)
    with pytest.raises(ValueError, match="'so', the selection to lift by"):
        pooler(x=x, lifting=True)
    pooler.clear_cache()
    with pytest.raises(ValueError, match=r"'x' to have shape \[num_nodes, 5\]"):
        pooler(x=batch.x[:, :3], adj=batch.edge_index, batch=batch.batch)
    pooler.reset_parameters()
    assert pooler(x=batch.x, adj=batch.edge_index, batch=batch.batch).x.shape == (15, 5)


def test_same_as_our_own(batch):
    from torch_gic.contrib.tgp import VIGMMPooling

    theirs, ours = VIGMMPooling(5, 0.25, remove_self_loops=False), VIGMMPool(5, 0.25)
    ours.select.load_state_dict(theirs.selector.select.state_dict())
    arguments = batch.x, batch.edge_index, batch.edge_weight
    out, expected = theirs(*arguments, batch=batch.batch), ours(*arguments, batch.batch)
    torch.testing.assert_close(out.x, expected.x)
    assert torch.equal(out.edge_index, expected.edge_index)
    torch.testing.assert_close(out.edge_weight, expected.edge_weight)
    out.x.square().sum().backward()
    assert theirs.selector.select.lin.weight.grad.abs().max() > 0


def test_precoarsening(batch):
    from tgp.data import PoolDataLoader, PreCoarsening

    from torch_gic.contrib.tgp import VIGMMPooling

    frozen = VIGMMPooling(ratio=0.5)
    assert frozen.is_precoarsenable
    assert not VIGMMPooling(5).is_precoarsenable
    graphs = [PreCoarsening([frozen, VIGMMPooling(ratio=0.5)])(graph) for graph in batch.to_data_list()]
    first, second = next(iter(PoolDataLoader(graphs, batch_size=3))).pooled_data
    assert (first.num_nodes, second.num_nodes) == (15, 9)
    with pytest.raises(ValueError, match="'x' to be given"):
        VIGMMPooling(5).precoarsening(batch.edge_index, batch.edge_weight, batch=batch.batch)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_adjacency_in_any_form(batch, as_sparse):
    """Edge lists with weights of one column, and sparse matrices, give the same."""
    from torch_gic.contrib.tgp import VIGMMPooling

    pooler = VIGMMPooling(ratio=0.5)
    expected = pooler(batch.x, batch.edge_index, batch.edge_weight, batch=batch.batch)
    if as_sparse:
        sparse = pytest.importorskip("torch_sparse")
        adj = sparse.SparseTensor.from_edge_index(batch.edge_index, batch.edge_weight, (29, 29)).t()
        out = pooler(batch.x, adj, batch=batch.batch)
    else:
        out = pooler(batch.x, batch.edge_index, batch.edge_weight.unsqueeze(1), batch=batch.batch)
    assert torch.equal(out.so.cluster_index, expected.so.cluster_index)
    torch.testing.assert_close(out.x, expected.x)


def test_without_a_batch(batch):
    from torch_gic.contrib.tgp import VIGMMPooling

    out = VIGMMPooling(ratio=4)(batch.x, batch.edge_index)
    assert out.batch is None
    assert out.x.shape == (4, 5)
    assert out.so.s.shape == (29, 4)


@pytest.mark.parametrize("lift", ["precomputed", "transpose", "inverse"])
def test_lifting(batch, lift):
    """Every node gets the features of its cluster, for tgp's inverse divided by the size of the cluster or not at all."""
    from torch_gic.contrib.tgp import VIGMMPooling

    pooler = VIGMMPooling(ratio=0.5, lift=lift)
    out = pooler(batch.x, batch.edge_index, batch=batch.batch)
    lifted = pooler(x=out.x, so=out.so, lifting=True)
    size = torch.bincount(out.so.cluster_index)[out.so.cluster_index].unsqueeze(1)
    expected = out.x[out.so.cluster_index]
    torch.testing.assert_close(lifted, expected / size if lift == "inverse" else expected)


def test_caching(batch):
    from torch_gic.contrib.tgp import VIGMMPooling

    pooler = VIGMMPooling(ratio=0.5, cached=True)
    first = pooler(batch.x, batch.edge_index, batch=batch.batch)
    again = pooler(2 * batch.x, batch.edge_index, batch=batch.batch)
    assert again.so is first.so
    torch.testing.assert_close(again.x, 2 * first.x)
    graph = batch.get_example(0)
    with pytest.raises(ValueError, match=r"'x' to have 29 rows, as the graph whose selection is cached .got 9"):
        pooler(graph.x, graph.edge_index)
    pooler.clear_cache()
    assert pooler(graph.x, graph.edge_index).x.shape == (5, 5)


def test_unknown_arguments(batch):
    from torch_gic.contrib.tgp import VIGMMPooling

    with pytest.raises(TypeError, match="unexpected keyword argument 'k'"):
        VIGMMPooling(k=8)
    pooler = VIGMMPooling()
    with pytest.raises(TypeError, match="unexpected keyword argument 'edge_attr'"):
        pooler(batch.x, batch.edge_index, edge_attr=batch.edge_weight)
    with pytest.raises(TypeError, match="unexpected keyword argument 'edge_attr'"):
        pooler.selector(batch.x, batch.edge_index, edge_attr=batch.edge_weight)
