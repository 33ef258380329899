"""Clustering without a model: the number and size of clusters, the largest size, and what is refused."""

import pytest
import torch
from clusters import batch_of_graphs, settings
from torch_geometric.data import Batch, Data
from torch_geometric.loader import ClusterLoader
from torch_geometric.utils import cumsum, grid

import torch_gic
from torch_gic import Cluster, VIGMMPool, cluster
from torch_gic.coarsening import fill_clusters, merge_clusters
from torch_gic.loader import ClusterData


def random_edges(num_nodes=60, num_edges=150, seed=0):
    return torch.randint(num_nodes, (2, num_edges), generator=torch.Generator().manual_seed(seed))


def star(num_leaves):
    return torch.stack([torch.zeros(num_leaves, dtype=torch.long), torch.arange(1, num_leaves + 1)])


def test_the_clusters_of_the_pooling():
    edges, batch = random_edges(), torch.arange(60) // 20
    edges = edges[:, batch[edges[0]] == batch[edges[1]]]
    pooled = VIGMMPool(None, 0.3)(torch.randn(60, 2), edges, batch=batch)
    assert torch.equal(cluster(edges, ratio=0.3, batch=batch), pooled.select.cluster_index)
    pooled = VIGMMPool(None, 4)(torch.randn(60, 2), edges, batch=batch)
    assert torch.equal(cluster(edges, num_clusters=4, batch=batch), pooled.select.cluster_index)


@pytest.mark.parametrize("size", range(1, 200, 7))
@pytest.mark.parametrize("ratio", [0.07, 0.1, 0.3, 0.35, 1.0])
def test_number_of_clusters(size, ratio):
    """ceil(ratio * size), where 0.3 * 50 is 15."""
    hundredths = round(ratio * 100)
    expected = -(-hundredths * size // 100)
    assert int(cluster(torch.empty(2, 0, dtype=torch.long), ratio=ratio, num_nodes=size).max()) + 1 == expected


@pytest.mark.parametrize("edges", [random_edges(), grid(6, 10)[0], star(59), torch.empty(2, 0, dtype=torch.long)])
@pytest.mark.parametrize(("num_clusters", "max_size"), [(6, 10), (6, 11), (7, 20), (1, 60), (60, 1), (20, 3)])
def test_largest_size(edges, num_clusters, max_size):
    found = cluster(edges, num_clusters, max_size=max_size, num_nodes=60)
    size = torch.bincount(found)
    assert size.numel() == num_clusters
    assert int(size.min()) >= 1
    assert int(size.max()) <= max_size


def test_largest_size_in_a_batch():
    edges, batch = random_edges(), torch.arange(60) // 20
    edges = edges[:, batch[edges[0]] == batch[edges[1]]]
    together = cluster(edges, 3, batch=batch, max_size=7)
    for g in range(3):
        own = edges[:, batch[edges[0]] == g] - 20 * g
        assert torch.equal(cluster(own, 3, max_size=7, num_nodes=20), together[batch == g] - 3 * g)


@pytest.mark.parametrize(("num_clusters", "max_size"), [(6, 11), (10, 7)])
def test_with_a_largest_size_fewer_edges_are_cut(num_clusters, max_size):
    """Than of clusters of equal size that are numbered along the rows of the grid."""
    edges = grid(6, 10)[0]
    found = cluster(edges, num_clusters, max_size=max_size, num_nodes=60)
    rows = torch.arange(60) * num_clusters // 60
    cut, cut_of_rows = (int((parts[edges[0]] != parts[edges[1]]).sum()) for parts in (found, rows))
    assert cut < 0.9 * cut_of_rows


def test_what_is_left_over_is_filled_in():
    graph, batch, counts = batch_of_graphs(sizes=(40,))
    arguments = settings(graph, batch)
    merged = merge_clusters(*arguments, cumsum(counts), 4)
    assert (merged < 0).any()  # ten clusters of four: some do not fit
    graph, _, *order = arguments
    filled = fill_clusters(graph, *order, cumsum(counts), merged, 4)
    assert torch.equal(filled[merged >= 0], merged[merged >= 0])
    assert torch.equal(torch.bincount(filled), torch.full((10,), 4))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either 'num_clusters' or 'ratio' .got None and None"),
        ({"num_clusters": 3, "ratio": 0.5}, "either 'num_clusters' or 'ratio' .got 3 and 0.5"),
        ({"num_clusters": 0}, "'num_clusters' to be at least 1 .got 0"),
        ({"ratio": 1.5}, r"'ratio' to be in \(0, 1\] .got 1.5"),
        ({"num_clusters": 3, "max_size": 0}, "'max_size' to be at least 1 .got 0"),
        (
            {"num_clusters": 3, "max_size": 19},
            "'max_size' to be at least 20, since graph 0 has 60 nodes for 3 clusters .got 19",
        ),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        cluster(random_edges(), num_nodes=60, **arguments)


def test_transform_is_joined():
    transform = Cluster(num_clusters=2)
    assert str(transform) == "Cluster(num_clusters=2, ratio=None, max_size=None)"
    graphs = [transform(Data(edge_index=grid(2, n)[0], num_nodes=2 * n)) for n in (3, 4)]
    joined = Batch.from_data_list(graphs)
    assert torch.equal(joined.cluster, torch.cat([graphs[0].cluster, graphs[1].cluster]))


@pytest.mark.filterwarnings("ignore:Weights only load failed")  # of PyG's own file
def test_cluster_data(tmp_path):
    data = Data(x=torch.arange(60.0).view(-1, 1), edge_index=random_edges())
    parts = ClusterData(data, num_parts=6, save_dir=str(tmp_path))
    assert int(parts.partition.partptr.diff().max()) <= 11
    seen = torch.cat([batch.x for batch in ClusterLoader(parts, batch_size=2)])
    assert torch.equal(seen.sort(dim=0).values, data.x)
    again = ClusterData(data, num_parts=6, save_dir=str(tmp_path))
    assert torch.equal(again.partition.node_perm, parts.partition.node_perm)
    with pytest.raises(ValueError, match=r"'imbalance' to be at least 1 .got 0.5"):
        ClusterData(data, 6, imbalance=0.5)
    for number in (0, 61):
        with pytest.raises(ValueError, match=rf"'num_parts' to be from 1 to 60, the number of nodes .got {number}"):
            ClusterData(data, number)


def test_is_public():
    assert {"cluster", "Cluster"} <= set(torch_gic.__all__)


def test_a_graph_number_of_a_billion_is_refused():
    """Memory is taken for every graph up to the last."""
    with pytest.raises(ValueError, match=r"'batch' to number graphs from 0 on .got 1000000000 as the number of one"):
        cluster(random_edges(6, 5), 2, batch=torch.full((6,), 10**9))
