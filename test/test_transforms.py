import pytest
import torch
from conftest import odd_graph, random_graph
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.loader import DataLoader
from torch_geometric.utils import coalesce, to_torch_csr_tensor

from torch_gic import GIC, Fields, PreCoarsen, ReceptiveFields, VIGMMPool, receptive_fields
from torch_gic.datasets import Letters


def test_stores_the_fields():
    data = ReceptiveFields(3)(random_graph())
    fields = receptive_fields(data.edge_index, data.edge_weight, num_nodes=12, num_scales=3)
    stored = Fields.from_dict(data.fields)
    assert torch.equal(stored.index, fields.index)
    assert torch.equal(stored.weight, fields.weight)
    assert stored.settings == fields.settings
    assert str(ReceptiveFields(3)) == "ReceptiveFields(num_scales=3, add_self_loops=False, max_neighbors=None)"


def test_takes_a_transposed_adjacency():
    data = random_graph(directed=True)
    index, weight = coalesce(data.edge_index.flip(0), data.edge_weight)
    transposed = Data(x=data.x, adj_t=to_torch_csr_tensor(index, weight, size=(12, 12)))
    expected, out = ReceptiveFields(3)(data), ReceptiveFields(3)(transposed)
    assert torch.equal(out.fields["index"], expected.fields["index"])
    torch.testing.assert_close(out.fields["weight"], expected.fields["weight"])


def test_collates_with_graphs_that_have_isolated_nodes():
    parts = [random_graph(), odd_graph("isolated and joined"), odd_graph("empty"), odd_graph("star")]
    together = ReceptiveFields(3)(Batch.from_data_list(parts))
    transformed = [ReceptiveFields(3)(part.clone()) for part in parts]
    for batch in (Batch.from_data_list(transformed), next(iter(DataLoader(transformed, batch_size=4)))):
        assert torch.equal(batch.fields["index"], together.fields["index"])
        torch.testing.assert_close(batch.fields["weight"], together.fields["weight"])
        again = batch.to_data_list()
        assert torch.equal(again[3].fields["index"], transformed[3].fields["index"])


def test_as_transform_and_pre_transform_of_a_dataset():
    pre = Letters(4, pre_transform=ReceptiveFields(2, add_self_loops=False, max_neighbors=4))
    on_access = Letters(4, transform=ReceptiveFields(2, add_self_loops=False, max_neighbors=4))
    for a, b in zip(pre, on_access, strict=True):
        assert torch.equal(a.fields["index"], b.fields["index"])
        assert torch.equal(a.fields["weight"], b.fields["weight"])
        assert a.fields["settings"] == b.fields["settings"] == "num_scales=2, add_self_loops=False, max_neighbors=4"


def test_bad_input():
    with pytest.raises(TypeError, match=r"homogeneous Data object \(got HeteroData\)"):
        ReceptiveFields()(HeteroData())
    with pytest.raises(ValueError, match="'max_neighbors' to be at least 1"):
        ReceptiveFields(3, max_neighbors=0)
    with pytest.raises(ValueError, match="to have an 'edge_index' or an 'adj_t'"):
        ReceptiveFields()(Data(x=torch.ones(3, 1)))
    with pytest.raises(ValueError, match="'num_scales' to be at least 1"):
        ReceptiveFields(0)
    with pytest.raises(TypeError, match="unexpected keyword"):
        ReceptiveFields(3, hops=2)


def test_clusters_ahead_of_training():
    transform = PreCoarsen(0.5, 2)
    assert str(transform) == "PreCoarsen(0.5, 2)"
    graphs = [transform(random_graph(n, 2 * n, seed=n)) for n in (9, 14, 1)]
    batch = next(iter(DataLoader(graphs, batch_size=3)))
    pool = VIGMMPool(None, 0.5).double()
    selected = pool(batch.x, batch.edge_index, batch.edge_weight, batch.batch)
    given = pool(batch.x, batch.edge_index, batch.edge_weight, batch.batch, cluster=batch.cluster_1)
    for ours, expected in zip(given[:4], selected[:4], strict=True):
        torch.testing.assert_close(ours, expected)
    coarse = pool(*given[:4], cluster=batch.cluster_2)
    assert torch.bincount(coarse.batch).tolist() == [2, 2, 1]

    model = GIC(5, 3, "C(4)-P(0.5)-C(4)-P(0.5)-P", num_scales=1, num_components=2).double().eval()
    arguments = batch.x, batch.edge_index, batch.edge_weight, batch.batch
    assert model(*arguments, clusters=[batch.cluster_1, batch.cluster_2]).shape == (3, 3)
    with pytest.raises(ValueError, match=r"'clusters' to hold those of 2 coarsenings .got 1"):
        model(*arguments, clusters=[batch.cluster_1])

    dataset = Letters(4, pre_transform=transform)
    assert dataset[0].cluster_1.shape == (dataset[0].num_nodes,)


def test_bad_clusters():
    with pytest.raises(ValueError, match="at least one ratio"):
        PreCoarsen()
    with pytest.raises(ValueError, match="'ratio' to be in"):
        PreCoarsen(1.5)
    with pytest.raises(ValueError, match="at least one node"):
        PreCoarsen(0.5)(Data(edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=0))
    pool, x, edge_index = VIGMMPool(None), torch.randn(4, 2), torch.tensor([[0], [1]])
    for cluster, error, message in (
        (torch.tensor([0, 1]), ValueError, r"'cluster' to have shape \[4\].*\[2\]"),
        (torch.tensor([0.0, 1, 0, 0]), TypeError, "'cluster' to hold torch.int64"),
        (torch.tensor([0, 1, -1, 0]), ValueError, "'cluster' to be non-negative"),
        (torch.tensor([0, 0, 2, 2]), ValueError, "got none in cluster 1"),
        (torch.tensor([0, 2, 2, 0]), ValueError, r"below 4, the number of nodes .got 5"),
        (torch.tensor([1, 0, 1, 1]), ValueError, "got clusters across graphs"),
    ):
        with pytest.raises(error, match=message):
            pool(x, edge_index, batch=torch.tensor([0, 0, 1, 1]), cluster=cluster)
