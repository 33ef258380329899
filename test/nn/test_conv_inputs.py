"""What GICConv takes: every form of a graph, every kind of fields, and which mistakes it names."""

import pytest
import torch
from conftest import random_graph
from test_gic_conv import layer
from torch_geometric import EdgeIndex
from torch_geometric.testing import withPackage
from torch_geometric.utils import coalesce, to_torch_coo_tensor, to_torch_csc_tensor, to_torch_csr_tensor

from torch_gic import GICConv, receptive_fields


def simple_graph():
    """A directed graph without parallel edges, which sparse matrices cannot hold."""
    data = random_graph(directed=True)
    data.edge_index, data.edge_weight = coalesce(data.edge_index, data.edge_weight)
    return data


def test_edge_index_in_every_form():
    conv, data = layer().eval(), simple_graph()
    expected = conv(data.x, data.edge_index, data.edge_weight)
    for convert in (to_torch_coo_tensor, to_torch_csr_tensor, to_torch_csc_tensor):
        transposed = convert(data.edge_index.flip(0), data.edge_weight, size=(12, 12))
        torch.testing.assert_close(conv(data.x, transposed), expected)
    edges = EdgeIndex(data.edge_index, sparse_size=(12, 12))
    torch.testing.assert_close(conv(data.x, edges, data.edge_weight), expected)
    wide = to_torch_coo_tensor(data.edge_index, size=(12, 13))
    with pytest.raises(ValueError, match=r"'edge_index' to be a square matrix .*\[12, 13\]"):
        conv(data.x, wide)
    assert receptive_fields(EdgeIndex([[0], [1]], sparse_size=(5, 5)), add_self_loops=True).index.size(1) == 6  # five loops
    with pytest.raises(ValueError, match="'edge_weight' to be None"):
        conv(data.x, to_torch_coo_tensor(data.edge_index, size=(12, 12)), data.edge_weight)


@withPackage("torch_sparse")
def test_sparse_tensor():
    from torch_sparse import SparseTensor

    conv, data = layer().eval(), simple_graph()
    row, col = data.edge_index
    transposed = SparseTensor(row=col, col=row, value=data.edge_weight, sparse_sizes=(12, 12))
    torch.testing.assert_close(conv(data.x, transposed), conv(data.x, data.edge_index, data.edge_weight))


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (ValueError, "'in_channels' to be at least 1.*0", {"in_channels": 0}),
        (ValueError, "'num_scales' to be at least 1.*0", {"num_scales": 0}),
        (ValueError, "'num_components' to be at least 1.*-2", {"num_components": -2}),
        (ValueError, "'scale' to be positive.*0", {"scale": 0.0}),
        (ValueError, "'scale' to be positive.*nan", {"scale": float("nan")}),
        (ValueError, "'max_neighbors' to be at least 1.*0", {"max_neighbors": 0}),
        (ValueError, "'out_channels' to be at least 1.*0", {"out_channels": 0}),
        (ValueError, "'hidden_channels' to be at least 1.*0", {"hidden_channels": 0}),
        (TypeError, "unexpected keyword argument 'aggr'", {"aggr": "mean"}),
    ],
)
def test_bad_settings(error, message, arguments):
    with pytest.raises(error, match=message):
        GICConv(**{"in_channels": 5, "out_channels": 6} | arguments)


def fields_of(member, node, weight=1.0):
    return torch.tensor([[0, member], [0, node]]), torch.full((2, 1), weight)


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (ValueError, r"'x' to have shape \[num_nodes, 5\].*\[12, 4\]", {"x": torch.randn(12, 4)}),
        (ValueError, r"'x' to have shape \[num_nodes, 5\].*\[12\]", {"x": torch.randn(12)}),
        (TypeError, "'x' to be floating point.*int64", {"x": torch.ones(12, 5, dtype=torch.long)}),
        (ValueError, r"'x' to have shape \[num_nodes, 5\].*\[1, 12, 5\]", {"x": torch.randn(1, 12, 5)}),
        (TypeError, "'x' to be torch.float32.*float64", {"x": torch.randn(12, 5, dtype=torch.float64)}),
        (TypeError, "'x' to be a tensor.*list", {"x": [[1.0] * 5] * 12}),
        (TypeError, "'edge_weight' to be a tensor.*float", {"edge_weight": 2.0}),
        (ValueError, "'edge_index' to hold nodes", {"x": torch.randn(3, 5)}),
        (ValueError, r"'edge_weight' to have shape .*60, 1\]\); .squeeze", {"edge_weight": torch.ones(60, 1)}),
        (ValueError, "'edge_weight' to be non-negative", {"edge_weight": -torch.ones(60)}),
        (ValueError, r"'batch' to have shape \[12\]", {"batch": torch.zeros(3, dtype=torch.long)}),
        (TypeError, "'batch' to be a tensor.*tuple", {"batch": fields_of(0, 0)}),  # fields in its place
        (ValueError, r"num_scales=1, as of this layer \(got 3", {"fields": (torch.zeros(2, 4).long(), torch.ones(4, 3))}),
        (ValueError, r"shape \[4, num_scales\].*\[3, 1", {"fields": (torch.zeros(2, 4).long(), torch.ones(3, 1))}),
        (
            ValueError,
            "weight of 'fields' to be floating point",
            {"fields": (torch.zeros(2, 4).long(), torch.ones(4, 1).long())},
        ),
        (TypeError, "'fields' to be Fields, .*Tensor", {"fields": torch.zeros(2, 4).long()}),
        (TypeError, "'fields' to be a pair of tensors .*Tensor, NoneType", {"fields": (torch.zeros(2, 4).long(), None)}),
        (ValueError, r"index of 'fields' to hold int64 .*\[4\]", {"fields": (torch.zeros(4).long(), torch.ones(4, 1))}),
        (ValueError, r"index of 'fields' to hold int64 .*float32", {"fields": (torch.zeros(2, 4), torch.ones(4, 1))}),
        (ValueError, r"row 0 of the index .* \[0, 11\] \(got 0 to 12\); are these", {"fields": fields_of(12, 0)}),
        (ValueError, r"row 1 of the index .* \[0, 11\] \(got -1 to 0\); are these", {"fields": fields_of(0, -1)}),
        (ValueError, "'fields' to be finite and non-negative", {"fields": fields_of(0, 0, torch.nan)}),
        (ValueError, "'fields' to be finite and non-negative", {"fields": fields_of(0, 0, -1.0)}),
        (ValueError, "'fields' to have the keys", {"fields": {"index": torch.zeros(2, 4).long()}}),
        (TypeError, "unexpected keyword argument 'edge_attrs'", {"edge_attrs": torch.ones(60)}),
    ],
)
def test_bad_input(error, message, arguments):
    data = random_graph(dtype=torch.float32)
    with pytest.raises(error, match=message):
        GICConv(5, 6)(**{"x": data.x, "edge_index": data.edge_index} | arguments)


def test_another_flow_is_refused():
    conv = GICConv(4, 3)
    conv.flow = "target_to_source"
    with pytest.raises(ValueError, match=r"'flow' to be 'source_to_target' \(got 'target_to_source'\)"):
        conv(torch.randn(3, 4), torch.tensor([[0, 1], [1, 2]]))
