"""GICConv between two sets of nodes, and on graphs of several kinds."""

import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric.data import HeteroData
from torch_geometric.nn import HeteroConv, to_hetero
from torch_geometric.utils import to_torch_csr_tensor

from torch_gic import GICConv, receptive_fields
from torch_gic.fields import bipartite_fields

EDGES = torch.tensor([[0, 1, 1, 2, 2, 2], [1, 0, 1, 0, 1, 1]])  # three sources, two targets, two parallel edges
WEIGHT = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], dtype=torch.float64)
SOURCES, TARGETS = torch.randn(3, 5, dtype=torch.float64), torch.randn(2, 7, dtype=torch.float64)


def layer(**kwargs):
    torch.manual_seed(0)
    options = {"num_scales": 1, "num_components": 3, "hidden_channels": 4}
    return GICConv((5, 7), 6, **options | kwargs).double().eval()


def test_fields_by_hand():
    fields = bipartite_fields(EDGES, WEIGHT, size=(3, 2))
    assert fields.rowptr.tolist() == [0, 2, 5]
    assert fields.index.tolist() == [[1, 2, 0, 1, 2], [0, 0, 1, 1, 1]]
    expected = torch.tensor([2 / 5, 4 / 15, 1, 3 / 5, 11 / 15], dtype=torch.float64)
    torch.testing.assert_close(fields.weight[:, 0], expected)


def test_fields_are_those_of_the_undirected_graph():
    joined = EDGES + torch.tensor([[0], [3]])
    both, twice = torch.cat([joined, joined.flip(0)], dim=1), WEIGHT.repeat(2)
    whole = receptive_fields(both, twice, num_nodes=5)
    targets = whole.index[1] >= 3
    fields = bipartite_fields(EDGES, WEIGHT, size=(3, 2))
    assert torch.equal(fields.index + torch.tensor([[0], [3]]), whole.index[:, targets])
    torch.testing.assert_close(fields.weight, whole.weight[targets])


def test_pair_of_sources_and_targets():
    conv = layer()
    out = conv((SOURCES, TARGETS), EDGES, WEIGHT)
    assert out.shape == (2, 6)
    fields = bipartite_fields(EDGES, WEIGHT, size=(3, 2))
    torch.testing.assert_close(conv((SOURCES, TARGETS), None, fields=fields), out)
    unit = to_torch_csr_tensor(torch.tensor([[1, 0, 1], [0, 1, 1]]), size=(2, 3))
    torch.testing.assert_close(
        conv((SOURCES, TARGETS), unit.double()), conv((SOURCES, TARGETS), torch.tensor([[0, 1, 1], [1, 0, 1]]))
    )
    rectangular = EdgeIndex(EDGES, sparse_size=(3, 2))
    torch.testing.assert_close(conv((SOURCES, TARGETS), rectangular, WEIGHT), out)
    out.square().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in conv.parameters())


def test_targets_that_no_edge_enters():
    conv, four = layer(), TARGETS.repeat(2, 1)
    torch.testing.assert_close(conv((SOURCES, four), EDGES, WEIGHT)[2:], conv.linear.root(conv.clamp_target(four)[0])[2:])
    conv = layer(root_weight=False)  # in which nothing but the number of targets enters
    torch.nn.init.normal_(conv.filter.lin.bias)
    torch.testing.assert_close(conv((SOURCES, torch.empty(4, 0)), EDGES, WEIGHT)[2:], conv.filter.lin.bias.expand(2, 6))
    assert layer()((SOURCES, TARGETS[:0]), torch.empty(2, 0, dtype=torch.long)).shape == (0, 6)
    assert layer()((SOURCES[:0], TARGETS), torch.empty(2, 0, dtype=torch.long)).shape == (2, 6)


def test_one_tensor_twice_is_an_ordinary_graph():
    edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
    conv = GICConv(5, 6, num_scales=3, num_components=3).double().eval()
    torch.testing.assert_close(conv((SOURCES, SOURCES), edges), conv(SOURCES, edges))


def test_errors():
    with pytest.raises(ValueError, match=r"'num_scales' to be 1 for a pair .*\(got 3\)"):
        layer(num_scales=3)((SOURCES, TARGETS), EDGES)
    with pytest.raises(ValueError, match="'add_self_loops' to be False for a pair"):
        layer(add_self_loops=True)((SOURCES, TARGETS), EDGES)
    with pytest.raises(TypeError, match=r"pair of tensors \(x_src, x_dst\) \(got \(Tensor, NoneType\)\)"):
        layer()((SOURCES, None), EDGES)
    with pytest.raises(ValueError, match=r"targets in 'edge_index' to be below 1 \(got 1\)"):
        layer()((SOURCES, TARGETS[:1]), EDGES)
    with pytest.raises(ValueError, match=r"sources in 'edge_index' to be below 2 \(got 2\)"):
        layer(root_weight=False)((SOURCES[:2], torch.empty(5, 0)), EDGES)
    with pytest.raises(ValueError, match=r"'x_dst' to have shape \[num_nodes, 7\] \(got \[3, 5\]\)"):
        layer()((SOURCES, SOURCES.clone()), EDGES)
    with pytest.raises(ValueError, match=r"'x' to have shape \[num_nodes, 7\] \(got \[3, 5\]\)"):
        layer()(SOURCES, EDGES)
    with pytest.raises(ValueError, match=r"\[num_targets, num_sources\] = \[2, 3\] \(got \[3, 2\]\)"):
        layer()((SOURCES, TARGETS), to_torch_csr_tensor(torch.tensor([[0], [0]]), size=(3, 2)))
    with pytest.raises(ValueError, match=r"'x' to have shape \[num_nodes, 5\] \(got \[2, 7\]\)"):
        layer()((TARGETS, SOURCES), EDGES.flip(0))


def library():
    """Papers that cite papers, and authors who write them."""
    torch.manual_seed(0)
    data = HeteroData()
    data["paper"].x, data["author"].x = torch.randn(8, 5), torch.randn(4, 3)
    data["paper", "cites", "paper"].edge_index = torch.randint(8, (2, 20))
    writes = torch.stack([torch.randint(4, (12,)), torch.randint(8, (12,))])
    data["author", "writes", "paper"].edge_index = writes
    data["paper", "written_by", "author"].edge_index = writes.flip(0)
    return data


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = GICConv((-1, -1), 6, num_scales=1, num_components=2)
        self.norm = torch.nn.BatchNorm1d(6)
        self.second = GICConv((-1, -1), 2, num_scales=1, num_components=2)

    def forward(self, x, edge_index):
        return self.second(self.norm(self.first(x, edge_index)).relu(), edge_index)


def test_to_hetero():
    data = library()
    model = to_hetero(Network(), data.metadata())
    out = model(data.x_dict, data.edge_index_dict)
    assert {kind: tuple(value.shape) for kind, value in out.items()} == {"paper": (8, 2), "author": (4, 2)}
    sum(value.square().sum() for value in out.values()).backward()
    gradients = [parameter.grad for parameter in model.parameters()]
    assert all(gradient is not None and gradient.isfinite().all() for gradient in gradients)


def test_hetero_conv():
    data = library()
    conv = HeteroConv({kind: GICConv((-1, -1), 6, 2, 1) for kind in data.edge_types}, aggr="sum")
    assert conv(data.x_dict, data.edge_index_dict)["author"].shape == (4, 6)
