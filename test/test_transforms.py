import pytest
import torch
from conftest import odd_graph, random_graph
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.loader import DataLoader
from torch_geometric.utils import coalesce, to_torch_csr_tensor

from torch_gic import ReceptiveFields, receptive_fields
from torch_gic.datasets import NeighborhoodVariation


def test_stores_the_fields():
    data = ReceptiveFields(3)(random_graph())
    index, weight = receptive_fields(data.edge_index, data.edge_weight, num_nodes=12, num_scales=3)
    assert torch.equal(data.field_index, index)
    assert torch.equal(data.field_weight, weight)
    assert str(ReceptiveFields(3)) == "ReceptiveFields(num_scales=3, add_self_loops=True, max_neighbors=None)"


def test_takes_a_transposed_adjacency():
    data = random_graph(directed=True)
    index, weight = coalesce(data.edge_index.flip(0), data.edge_weight)
    transposed = Data(x=data.x, adj_t=to_torch_csr_tensor(index, weight, size=(12, 12)))
    expected, out = ReceptiveFields(3)(data), ReceptiveFields(3)(transposed)
    assert torch.equal(out.field_index, expected.field_index)
    torch.testing.assert_close(out.field_weight, expected.field_weight)


def test_collates_with_graphs_that_have_isolated_vertices():
    parts = [random_graph(), odd_graph("isolated and joined"), odd_graph("empty"), odd_graph("star")]
    together = ReceptiveFields(3)(Batch.from_data_list(parts))
    transformed = [ReceptiveFields(3)(part.clone()) for part in parts]
    for batch in (Batch.from_data_list(transformed), next(iter(DataLoader(transformed, batch_size=4)))):
        assert torch.equal(batch.field_index, together.field_index)
        torch.testing.assert_close(batch.field_weight, together.field_weight)
        again = batch.to_data_list()
        assert torch.equal(again[3].field_index, transformed[3].field_index)


def test_as_transform_and_pre_transform_of_a_dataset():
    pre = NeighborhoodVariation(4, pre_transform=ReceptiveFields(2, add_self_loops=False, max_neighbors=4))
    on_access = NeighborhoodVariation(4, transform=ReceptiveFields(2, add_self_loops=False, max_neighbors=4))
    for a, b in zip(pre, on_access, strict=True):
        assert torch.equal(a.field_index, b.field_index)
        assert torch.equal(a.field_weight, b.field_weight)


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
