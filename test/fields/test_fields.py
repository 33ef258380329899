"""Fields as an object: refused where they do not belong, joined by loaders, checked when they come as plain tensors."""

import pytest
import torch
from conftest import odd_graph, random_graph
from torch_geometric.data import Batch
from torch_geometric.loader import DataLoader

from torch_gic import GIC, Fields, GICConv, ReceptiveFields, receptive_fields
from torch_gic.fields import bipartite_fields

SETTINGS = {"num_scales": 2, "add_self_loops": True, "max_neighbors": 4}


def fields_of(data, **kwargs):
    return receptive_fields(data.edge_index, data.edge_weight, num_nodes=data.num_nodes, **SETTINGS | kwargs)


def layer():
    torch.manual_seed(0)
    return GICConv(5, 6, num_components=3, **SETTINGS).double()


def same(a, b):
    assert (a.num_nodes, a.num_sources, a.settings) == (b.num_nodes, b.num_sources, b.settings)
    assert torch.equal(a.edge_index, b.edge_index)
    assert torch.equal(a.index, b.index)
    assert torch.equal(a.rowptr, b.rowptr)
    torch.testing.assert_close(a.weight, b.weight)


def test_says_what_it_is():
    fields = fields_of(random_graph())
    expected = f"num_entries={fields.index.size(1)}, num_scales=2, add_self_loops=True, max_neighbors=4"
    assert str(fields) == f"Fields(num_nodes=12, {expected})"
    assert (fields.num_nodes, fields.num_sources, fields.edge_index.size(1), fields.num_scales) == (12, 12, 60, 2)
    assert torch.equal(fields.rowptr.diff(), torch.bincount(fields.index[1], minlength=12))
    assert receptive_fields(random_graph().edge_index).num_scales == 1
    plain = Fields.from_pair(torch.tensor([[0], [1]]), torch.ones(1, 3), (2, 2))
    assert str(plain) == "Fields(num_nodes=2, num_entries=1, num_scales=3)"


@pytest.mark.parametrize("kind", ["object", "dictionary"])
@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda data: fields_of(random_graph(11, 30)), "a graph of 12 nodes .got those of 11 and 11.; are these"),
        (lambda data: fields_of(random_graph(12, 29)), "a graph of 60 edges .got those of 58 edges.; are these"),
        (lambda data: fields_of(random_graph(seed=1)), "'fields' of this graph .got those of other edges"),
        (
            lambda data: fields_of(data.subgraph(torch.arange(8))),
            "12 nodes .got those of 8 and 8.*cut out part of a graph needs fields of its own",
        ),
        (lambda data: fields_of(data, num_scales=3), "num_scales=2, as of this layer .got 3"),
        (lambda data: fields_of(data, add_self_loops=False), "add_self_loops=True.* as this layer's .*add_self_loops=False"),
        (lambda data: fields_of(data, max_neighbors=3), "max_neighbors=4, as this layer's .*max_neighbors=3"),
        (lambda data: fields_of(data, max_neighbors=None), "max_neighbors=4, as this layer's .*max_neighbors=None"),
    ],
)
def test_fields_of_something_else_are_refused(other, message, kind):
    data, conv = random_graph(), layer()
    model = GIC(5, 2, "C(4)-C(4)", num_components=2, **SETTINGS).double()
    right, wrong = fields_of(data), other(data)
    if kind == "dictionary":
        right, wrong = right.to_dict(), wrong.to_dict()
    for module in (conv, model):
        assert module(data.x, data.edge_index, fields=right).isfinite().all()
        with pytest.raises(ValueError, match=message):
            module(data.x, data.edge_index, fields=wrong)
    for call in (model.inference, conv.init_from_data):
        with pytest.raises(ValueError, match=message):
            call(data.x, data.edge_index, fields=wrong)


def test_fields_of_the_whole_graph_are_refused_for_a_part():
    data = ReceptiveFields(**SETTINGS)(random_graph())
    part = data.subgraph(torch.arange(8))  # which keeps what it does not know
    with pytest.raises(ValueError, match=r"graph of 8 nodes .got those of 12 and 12"):
        layer()(part.x, part.edge_index, fields=part.fields)


def test_fields_between_two_sets():
    edges, size = torch.tensor([[0, 1, 2], [1, 0, 1]]), (3, 2)
    fields = bipartite_fields(edges, size=size)
    assert (fields.num_sources, fields.num_nodes, fields.edge_index.size(1)) == (3, 2, 3)
    conv = GICConv((5, 5), 6)
    assert conv((torch.randn(3, 5), torch.randn(2, 5)), edges, fields=fields).shape == (2, 6)
    with pytest.raises(ValueError, match=r"4 sources and 2 nodes .got those of 3 and 2"):
        conv((torch.randn(4, 5), torch.randn(2, 5)), edges, fields=fields)
    with pytest.raises(ValueError, match="add_self_loops=True"):
        GICConv((5, 5), 6, add_self_loops=True)((torch.randn(3, 5), torch.randn(2, 5)), edges, fields=fields)


def test_dictionary_there_and_back():
    for fields in (fields_of(random_graph()), fields_of(odd_graph("empty")), fields_of(odd_graph("isolated nodes"))):
        same(Fields.from_dict(fields.to_dict()), fields)
    with pytest.raises(
        ValueError, match=r"fields made by 'receptive_fields' or 'bipartite_fields' .got those of plain tensors"
    ):
        Fields.from_pair(torch.tensor([[0], [1]]), torch.ones(1, 1), (2, 2)).to_dict()
    broken = fields.to_dict()
    del broken["count"]
    with pytest.raises(ValueError, match=r"'fields' to have the keys .*'count'.*got .'index', 'weight', 'edge_index'"):
        Fields.from_dict(broken)


def test_other_device():
    moved = fields_of(random_graph()).to("meta")
    assert {moved.index.device.type, moved.weight.device.type, moved.rowptr.device.type} == {"meta"}
    assert moved.settings == fields_of(random_graph()).settings


def test_loaders_join_the_fields_of_graphs():
    parts = [random_graph(9, 20, seed=1), odd_graph("isolated and joined"), odd_graph("empty"), odd_graph("star")]
    transform = ReceptiveFields(**SETTINGS)
    joined = fields_of(Batch.from_data_list(parts))
    data = [transform(part.clone()) for part in parts]
    batch = next(iter(DataLoader(data, batch_size=4)))
    same(Fields.from_dict(batch.fields), joined)
    for again, part in zip(batch.to_data_list(), data, strict=True):
        same(Fields.from_dict(again.fields), Fields.from_dict(part.fields))
    conv = layer().eval()
    arguments = batch.x, batch.edge_index
    torch.testing.assert_close(conv(*arguments, fields=batch.fields), conv(*arguments, batch.edge_weight))


def test_graphs_with_other_settings_are_not_joined():
    graphs = [ReceptiveFields(2, max_neighbors=limit)(random_graph()) for limit in (4, 5)]
    batch = Batch.from_data_list(graphs)
    with pytest.raises(ValueError, match=r"'fields' of all graphs .* same settings .*max_neighbors=4 and .*max_neighbors=5"):
        layer()(batch.x, batch.edge_index, fields=batch.fields)


def test_a_pair_is_sorted():
    fields = fields_of(random_graph())
    order = torch.randperm(fields.index.size(1), generator=torch.Generator().manual_seed(0))
    ours = Fields.from_pair(fields.index[:, order], fields.weight[order], (12, 12))
    assert torch.equal(ours.index[1], fields.index[1])
    assert torch.equal(ours.rowptr, fields.rowptr)
    for node in range(12):
        begin, end = fields.rowptr[node : node + 2].tolist()
        members, place = ours.index[0, begin:end].sort()
        assert torch.equal(members, fields.index[0, begin:end])
        assert torch.equal(ours.weight[begin:end][place], fields.weight[begin:end])


INDEX, WEIGHT = torch.tensor([[0, 1], [1, 1]]), torch.ones(2, 2)


@pytest.mark.parametrize(
    ("error", "message", "index", "weight"),
    [
        (ValueError, r"row 0 of the index .* \[0, 2\] \(got 0 to 3\)", torch.tensor([[0, 3], [1, 1]]), WEIGHT),
        (ValueError, r"row 0 of the index .* \[0, 2\] \(got -1 to 0\)", torch.tensor([[0, -1], [1, 1]]), WEIGHT),
        (ValueError, r"row 1 of the index .* \[0, 1\] \(got 0 to 2\)", torch.tensor([[0, 1], [0, 2]]), WEIGHT),
        (ValueError, r"shape \[2, num_entries\] .*int64, \[1, 2\]", INDEX[:1], WEIGHT),
        (ValueError, "to hold int64 .*int32", INDEX.int(), WEIGHT),
        (ValueError, r"floating point in shape \[2, num_scales\] .*\[2\]", INDEX, WEIGHT[:, 0]),
        (ValueError, r"floating point in shape \[2, num_scales\] .*\[1, 2\]", INDEX, WEIGHT[:1]),
        (ValueError, "floating point .*int64", INDEX, WEIGHT.long()),
        (ValueError, "finite and non-negative", INDEX, -WEIGHT),
        (ValueError, "finite and non-negative", INDEX, torch.nan * WEIGHT),
        (ValueError, "finite and non-negative", INDEX, torch.inf * WEIGHT),
        (TypeError, r"pair of tensors \(index, weight\) \(got list, Tensor\)", INDEX.tolist(), WEIGHT),
    ],
)
def test_a_pair_is_checked(error, message, index, weight):
    assert Fields.from_pair(INDEX, WEIGHT, (3, 2)).num_nodes == 2
    with pytest.raises(error, match=message):
        Fields.from_pair(index, weight, (3, 2))
