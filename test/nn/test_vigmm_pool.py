import copy
import math

import pytest
import torch
from conftest import permute, random_graph
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv
from torch_geometric.nn.pool.select import SelectOutput
from torch_geometric.utils import to_torch_coo_tensor

from torch_gic import VIGMMPool

AFFINITIES = ["cut", "laplacian"]
SETTINGS = [{}, {"soft": True}, {"affinity": "laplacian"}]


def pool(ratio=0.25, **kwargs):
    """With an influence as if it had been learnt: no two nodes are alike."""
    torch.manual_seed(0)
    layer = VIGMMPool(5, ratio, **kwargs).double()
    torch.nn.init.normal_(layer.select.lin.weight)
    return layer


@pytest.mark.parametrize("in_channels", [5, -1])
def test_starts_with_equal_influence(in_channels):
    data = random_graph(20, 40, dtype=torch.float32)
    learnt, constant = VIGMMPool(in_channels, 0.25), VIGMMPool(None, 0.25)
    for _ in range(2):
        out = learnt(data.x, data.edge_index, data.edge_weight)
        assert torch.equal(learnt.select.influence(data.x), torch.ones(20))
        assert torch.equal(out.select.cluster_index, constant(data.x, data.edge_index, data.edge_weight).select.cluster_index)
        torch.nn.init.normal_(learnt.select.lin.weight)
        learnt.reset_parameters()
    assert list(constant.parameters()) == []
    assert str(constant) == "VIGMMPool(None, ratio=0.25, affinity='cut')"


def dense(edge_index, edge_weight, n):
    return torch.zeros(n, n, dtype=torch.float64).index_put(
        (edge_index[0], edge_index[1]), edge_weight.double(), accumulate=True
    )


@pytest.mark.parametrize("affinity", AFFINITIES)
def test_output_is_what_the_selection_says(affinity):
    data = random_graph(20, 40)
    out = pool(affinity=affinity)(data.x, data.edge_index, data.edge_weight)
    assert isinstance(out.select, SelectOutput)
    assert [*out] == [out.x, out.edge_index, out.edge_weight, out.batch, out.select]
    cluster = out.select.cluster_index
    assert cluster.shape == (20,)
    assert out.select.num_clusters == out.x.size(0) == 5
    assert torch.equal(cluster.unique(), torch.arange(5))
    assert torch.equal(out.x, torch.stack([data.x[cluster == c].amax(0) for c in range(5)]))
    P = torch.nn.functional.one_hot(cluster, 5).double()
    coarse = P.t() @ dense(data.edge_index, data.edge_weight, 20) @ P
    torch.testing.assert_close(dense(out.edge_index, out.edge_weight, 5), coarse)
    torch.testing.assert_close(coarse, coarse.t())
    assert out.batch.tolist() == [0] * 5
    assert torch.equal(VIGMMPool.lift(out.x, out.select), out.x[cluster])
    with pytest.raises(ValueError, match=r"'x' to have 5 rows, one per cluster .got 20"):
        VIGMMPool.lift(data.x, out.select)
    with pytest.raises(TypeError, match=r"'select' to be that of the output, out.select .got VIGMMPoolOutput"):
        VIGMMPool.lift(out.x, out)


@pytest.mark.parametrize("reduce", ["max", "sum", "mean"])
def test_reduce(reduce):
    data = random_graph(20, 40)
    out = pool(reduce=reduce)(data.x, data.edge_index, data.edge_weight)
    function = {"max": torch.amax, "sum": torch.sum, "mean": torch.mean}[reduce]
    expected = torch.stack([function(data.x[out.select.cluster_index == c], 0) for c in range(5)])
    torch.testing.assert_close(out.x, expected)


def test_self_loops_can_be_removed():
    data = random_graph(20, 40)
    kept, removed = (pool(remove_self_loops=flag)(data.x, data.edge_index, data.edge_weight) for flag in (False, True))
    assert bool((removed.edge_index[0] != removed.edge_index[1]).all())
    between = kept.edge_index[0] != kept.edge_index[1]
    assert torch.equal(removed.edge_index, kept.edge_index[:, between])
    assert torch.equal(removed.edge_weight, kept.edge_weight[between])
    torch.testing.assert_close(kept.edge_weight.sum(), data.edge_weight.sum())


def test_two_cliques_fall_apart_at_their_bridge():
    clique = torch.combinations(torch.arange(5)).t()
    edge_index = torch.cat([clique, clique + 5, torch.tensor([[0], [5]])], dim=1)
    edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    x = torch.randn(10, 5, dtype=torch.float64)
    cluster = pool(ratio=2)(x, edge_index).select.cluster_index
    assert len(cluster[:5].unique()) == len(cluster[5:].unique()) == 1
    assert cluster[0] != cluster[5]


def normalised_cut(edge_index, cluster, num_clusters):
    weight = torch.ones(edge_index.size(1))
    volume = torch.zeros(num_clusters).index_add(0, cluster[edge_index[0]], weight)
    inside = cluster[edge_index[0]] == cluster[edge_index[1]]
    links = torch.zeros(num_clusters).index_add(0, cluster[edge_index[0]], weight * ~inside)
    return float((links / volume.clamp(min=1)).mean())


def test_the_cut_affinity_cuts_and_the_printed_one_does_not():
    side = 12
    grid = torch.arange(side * side).view(side, side)
    edge_index = torch.cat(
        [torch.stack([grid[:, :-1].flatten(), grid[:, 1:].flatten()]), torch.stack([grid[:-1].flatten(), grid[1:].flatten()])],
        1,
    )
    edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    x = torch.randn(side * side, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    cuts = {k: normalised_cut(edge_index, pool(affinity=k)(x, edge_index).select.cluster_index, 36) for k in AFFINITIES}
    random = normalised_cut(edge_index, torch.randperm(144, generator=torch.Generator().manual_seed(0)) % 36, 36)
    assert cuts["cut"] < 0.7 * random
    assert cuts["laplacian"] > 0.8 * random


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("ratio", [0.1, 0.25, 0.5, 1.0, 1, 3])
def test_every_graph_gets_the_clusters_it_asked_for(graphs, settings, ratio):
    parts, batch = graphs
    out = pool(ratio, **settings)(batch.x, batch.edge_index, batch.edge_weight, batch.batch)
    wanted = [min(ratio, g.num_nodes) if isinstance(ratio, int) else math.ceil(ratio * g.num_nodes) for g in parts]
    assert torch.bincount(out.batch, minlength=4).tolist() == wanted
    assert bool((torch.bincount(out.select.cluster_index, minlength=sum(wanted)) > 0).all())
    assert torch.equal(out.batch[out.select.cluster_index], batch.batch)  # no cluster reaches into another graph
    assert torch.equal(out.batch[out.edge_index[0]], out.batch[out.edge_index[1]])


@pytest.mark.parametrize("settings", SETTINGS)
def test_odd_graphs(odd, settings):
    layer = pool(**settings)
    out = layer(odd.x.requires_grad_(), odd.edge_index, odd.edge_weight)
    assert out.x.size(0) == math.ceil(0.25 * odd.num_nodes)
    assert out.x.size(0) == len(out.select.cluster_index.unique())
    out.x.square().sum().backward()
    for tensor in (out.x, out.edge_weight, odd.x.grad, *(p.grad for p in layer.parameters() if p.grad is not None)):
        assert bool(torch.isfinite(tensor).all())


def test_the_gradient_reaches_h_and_changes_no_value():
    data = random_graph(20, 40)
    layer = pool()
    out = layer(data.x, data.edge_index, data.edge_weight)
    assert torch.equal(out.select.weight, torch.ones(20, dtype=torch.float64))
    (out.x * torch.arange(5).double().unsqueeze(1)).sum().backward()
    assert layer.select.lin.weight.grad.abs().max() > 0
    assert layer.select.lin.bias.grad.abs().max() > 0


def test_edge_weights_of_any_unit_give_the_same_clusters():
    data = random_graph(20, 40)
    clusters = [pool()(data.x, data.edge_index, data.edge_weight * unit).select.cluster_index for unit in (1e-20, 1.0, 1e20)]
    assert torch.equal(clusters[0], clusters[1])
    assert torch.equal(clusters[1], clusters[2])


def test_influence_has_the_same_bits_in_any_batch():
    """Ties are broken by it: a last bit that depends on the number of rows would make clusters depend on the batch."""
    x = torch.randn(100, 5, generator=torch.Generator().manual_seed(0))
    select = VIGMMPool(5).select
    torch.nn.init.normal_(select.lin.weight)
    whole = select.influence(x)
    for begin in range(0, 100, 7):
        for end in range(begin + 1, 101, 5):
            assert torch.equal(select.influence(x[begin:end]), whole[begin:end])


@pytest.mark.parametrize("settings", SETTINGS)
def test_batch_equals_its_graphs_in_any_order_of_nodes(graphs, settings):
    parts, batch = graphs
    layer = pool(0.4, **settings)
    out = layer(batch.x, batch.edge_index, batch.edge_weight, batch.batch)
    for number, part in enumerate(parts):
        alone = layer(part.x, part.edge_index, part.edge_weight)
        torch.testing.assert_close(out.x[out.batch == number], alone.x, rtol=0, atol=1e-6)
        edges = out.batch[out.edge_index[0]] == number
        torch.testing.assert_close(out.edge_weight[edges], alone.edge_weight, rtol=0, atol=1e-6)
    data = Data(x=batch.x, edge_index=batch.edge_index, edge_weight=batch.edge_weight, batch=batch.batch)
    moved, order = permute(data, seed=1)
    other = layer(moved.x, moved.edge_index, moved.edge_weight, moved.batch)
    assert torch.equal(other.select.cluster_index[order], out.select.cluster_index)
    torch.testing.assert_close(other.x, out.x, rtol=0, atol=1e-6)


def test_the_order_of_equal_nodes_changes_nothing_but_the_order():
    # Constant influence and unit weights: nothing but the structure is left to break ties.
    layer = VIGMMPool(None, 0.25)
    for seed in range(10):
        data = random_graph(40, 60, seed=seed)
        data.edge_weight = torch.ones_like(data.edge_weight)
        moved, order = permute(data, seed=seed)
        out, other = (layer(d.x, d.edge_index, d.edge_weight) for d in (data, moved))
        sizes, others = (torch.bincount(o.select.cluster_index).sort().values for o in (out, other))
        assert torch.equal(sizes, others)
        seen = torch.bincount(data.edge_index[0], minlength=40) > 1  # leaves of one node and lone nodes look the same
        assert torch.equal(other.select.cluster_index[order][seen], out.select.cluster_index[seen])


def test_deterministic_over_runs_and_threads():
    batch = Batch.from_data_list([random_graph(n, 2 * n, seed=n) for n in range(5, 45)])
    layer, results, threads = pool(), [], torch.get_num_threads()
    for count in (1, 2, 1):
        torch.set_num_threads(count)
        results.append(layer(batch.x, batch.edge_index, batch.edge_weight, batch.batch).select.cluster_index)
    torch.set_num_threads(threads)
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


def test_inside_a_pyg_model_and_copies():
    data = random_graph(20, 40, dtype=torch.float32)
    torch.manual_seed(0)
    layer = VIGMMPool(-1, 0.5)
    assert str(layer) == "VIGMMPool(-1, ratio=0.5, affinity='cut')"
    out = layer(data.x, data.edge_index)
    assert out.edge_weight.dtype == out.x.dtype == torch.float32
    assert GCNConv(5, 3)(out.x, out.edge_index, out.edge_weight).shape == (10, 3)
    twin = VIGMMPool(5, 0.5)
    twin.load_state_dict(layer.state_dict())
    for copied in (twin, copy.deepcopy(layer)):
        assert torch.equal(copied(data.x, data.edge_index).x, out.x)
    layer.reset_parameters()
    assert torch.compile(layer, backend="eager")(data.x, data.edge_index).x.shape == (10, 5)
    sparse = to_torch_coo_tensor(data.edge_index.flip(0), size=(20, 20))
    assert layer(data.x, sparse).x.shape == (10, 5)
