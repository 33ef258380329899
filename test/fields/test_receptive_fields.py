import pytest
import torch
from conftest import ODD_GRAPHS, odd_graph, permute, random_graph

from torch_gic import receptive_fields


def dense_fields(data, num_scales, add_self_loops=False):
    """The formula of the paper, A~_k = A^k diag(A^k 1)^-1, with 1 for the degree where no walk ends."""
    n = data.num_nodes
    A = torch.zeros(n, n, dtype=torch.float64).index_put(
        (data.edge_index[1], data.edge_index[0]), data.edge_weight.double(), accumulate=True
    )
    if add_self_loops:
        A = A + torch.eye(n, dtype=torch.float64)
    scales = []
    for k in range(1, num_scales + 1):
        power = torch.linalg.matrix_power(A, k)
        degree = torch.where(power.sum(1) > 0, power.sum(1), 1.0)
        scales.append(power / degree)
    return torch.stack(scales, dim=-1)


def to_dense(fields):
    dense = torch.zeros(fields.num_nodes, fields.num_nodes, fields.num_scales, dtype=fields.weight.dtype)
    dense[fields.index[1], fields.index[0]] = fields.weight
    return dense


@pytest.mark.parametrize("add_self_loops", [True, False])
@pytest.mark.parametrize("directed", [True, False])
def test_equals_the_dense_formula(directed, add_self_loops):
    data = random_graph(20, 30, directed=directed)
    fields = receptive_fields(
        data.edge_index, data.edge_weight, num_nodes=data.num_nodes, num_scales=7, add_self_loops=add_self_loops
    )
    torch.testing.assert_close(to_dense(fields), dense_fields(data, 7, add_self_loops), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", [name for name in ODD_GRAPHS if "weights" not in name])
@pytest.mark.parametrize("add_self_loops", [True, False])
def test_odd_graphs_equal_the_dense_formula(name, add_self_loops):
    data = odd_graph(name)
    n = data.num_nodes
    fields = receptive_fields(data.edge_index, data.edge_weight, num_nodes=n, num_scales=3, add_self_loops=add_self_loops)
    torch.testing.assert_close(to_dense(fields), dense_fields(data, 3, add_self_loops))


def test_by_hand():
    # The path 0 - 1 - 2 with loops: A = [[1,1,0],[1,1,1],[0,1,1]] with row sums (2,3,2),
    # A^2 = [[2,2,1],[2,3,2],[1,2,2]] with row sums (5,7,5)
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    fields = receptive_fields(edge_index, num_scales=2, add_self_loops=True)
    assert fields.rowptr.tolist() == [0, 3, 6, 9]
    assert fields.index.tolist() == [[0, 1, 2, 0, 1, 2, 0, 1, 2], [0, 0, 0, 1, 1, 1, 2, 2, 2]]
    one = [1 / 2, 1 / 3, 0, 1 / 2, 1 / 3, 1 / 2, 0, 1 / 3, 1 / 2]
    two = [2 / 5, 2 / 7, 1 / 5, 2 / 5, 3 / 7, 2 / 5, 1 / 5, 2 / 7, 2 / 5]
    torch.testing.assert_close(fields.weight, torch.tensor([one, two]).t())


def test_by_hand_without_loops():
    # The same path, as it is by default: A has row sums (1,2,1), and A^2 = [[1,0,1],[0,2,0],[1,0,1]] has (2,2,2)
    fields = receptive_fields(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_scales=2)
    assert fields.index.tolist() == [[0, 1, 2, 0, 1, 2, 0, 1, 2], [0, 0, 0, 1, 1, 1, 2, 2, 2]]
    one = [0, 1 / 2, 0, 1, 0, 1, 0, 1 / 2, 0]
    two = [1 / 2, 0, 1 / 2, 0, 1, 0, 1 / 2, 0, 1 / 2]
    torch.testing.assert_close(fields.weight, torch.tensor([one, two]).t())


def test_direction_is_that_of_pyg():
    fields = receptive_fields(torch.tensor([[0], [1]]), add_self_loops=True)  # a message from 0 to 1; one scale
    assert fields.index.tolist() == [[0, 0, 1], [0, 1, 1]]
    assert fields.weight.flatten().tolist() == [1.0, 1.0, 0.5]


@pytest.mark.parametrize("max_neighbors", [None, 2])
def test_a_node_that_no_edge_enters_is_in_the_fields_of_others(max_neighbors):
    """On the directed path 0 -> 1 -> 2, of which no walk ends in 0: the field of 1 would be empty without a word."""
    path = torch.tensor([[0, 1], [1, 2]])
    fields = receptive_fields(path, torch.tensor([3.0, 5.0]), num_scales=2, max_neighbors=max_neighbors)
    assert fields.index.tolist() == [[0, 0, 1], [1, 2, 2]]
    # In one step, 3 comes from 0, whose degree is 0, and 5 from 1, whose degree is 3; in two steps, 15 from 0.
    torch.testing.assert_close(fields.weight, torch.tensor([[3, 0], [0, 15], [5 / 3, 0]]))


@pytest.mark.parametrize("weight", [1e-30, 1e30])
def test_weights_of_any_unit(weight):
    data = random_graph(10, 20)
    settings = {"num_nodes": 10, "num_scales": 7, "add_self_loops": False}
    one, other = (receptive_fields(data.edge_index, data.edge_weight * w, **settings) for w in (1.0, weight))
    assert torch.equal(one.index, other.index)
    torch.testing.assert_close(one.weight, other.weight)


def test_finite_with_huge_weights_beside_loops(odd):
    weight = receptive_fields(odd.edge_index, odd.edge_weight.float(), num_nodes=odd.num_nodes, num_scales=7).weight
    assert weight.dtype == torch.float32
    assert bool(torch.isfinite(weight).all())
    assert bool((weight >= 0).all())


def test_batch_equals_its_graphs(graphs):
    parts, batch = graphs
    joined = receptive_fields(batch.edge_index, batch.edge_weight, batch=batch.batch, num_scales=3)
    single = [receptive_fields(g.edge_index, g.edge_weight, num_nodes=g.num_nodes, num_scales=3) for g in parts]
    index = torch.cat([fields.index + start for fields, start in zip(single, batch.ptr, strict=False)], 1)
    assert torch.equal(joined.index, index)
    torch.testing.assert_close(joined.weight, torch.cat([fields.weight for fields in single]), rtol=0, atol=1e-15)


def test_permutation():
    data = random_graph(15, 25)
    other, order = permute(data)
    field = to_dense(receptive_fields(data.edge_index, data.edge_weight, num_nodes=15, num_scales=7))
    moved = to_dense(receptive_fields(other.edge_index, other.edge_weight, num_nodes=15, num_scales=7))
    torch.testing.assert_close(moved[order][:, order], field)


def test_is_differentiable_in_the_edge_weights():
    data = random_graph(5, 6, directed=True)
    for add_self_loops in (True, False):
        assert torch.autograd.gradcheck(
            lambda w, loops=add_self_loops: (
                receptive_fields(data.edge_index, w, num_nodes=5, num_scales=3, add_self_loops=loops).weight
            ),
            data.edge_weight.requires_grad_(),
        )


def test_transforms_of_torch_func_reach_the_edge_weights():
    data = random_graph(5, 6, directed=True)

    def total(weight):
        return receptive_fields(data.edge_index, weight, num_nodes=5, num_scales=3).weight.square().sum()

    weight = data.edge_weight.clone().requires_grad_()
    (expected,) = torch.autograd.grad(total(weight), weight)
    assert expected.abs().max() > 0.01
    torch.testing.assert_close(torch.func.grad(total)(data.edge_weight), expected)
    tangent = torch.randn_like(expected)
    torch.testing.assert_close(torch.func.jvp(total, (data.edge_weight,), (tangent,))[1], (expected * tangent).sum())


@pytest.mark.parametrize("max_neighbors", [1, 3, 6])
def test_max_neighbors_keeps_the_strongest(max_neighbors):
    data = random_graph(30, 60)
    exact = dense_fields(data, 4)
    fields = receptive_fields(data.edge_index, data.edge_weight, num_nodes=30, num_scales=4, max_neighbors=max_neighbors)
    assert int(fields.rowptr.diff().max()) <= max_neighbors
    kept = exact[fields.index[1], fields.index[0]]
    assert bool((fields.weight <= kept + 1e-12).all())  # normalised by the full rows, so never above the exact weight

    # With one scale nothing is cut on the way: the kept weights are the largest of each row, and exact.
    fields = receptive_fields(data.edge_index, data.edge_weight, num_nodes=30, max_neighbors=max_neighbors)
    kept = to_dense(fields)[..., 0]
    strongest = torch.where(exact[..., 0] >= exact[..., 0].topk(max_neighbors).values[:, -1:], exact[..., 0], 0.0)
    torch.testing.assert_close(kept, strongest)


def test_max_neighbors_that_cut_nothing_change_nothing():
    data = random_graph(12, 20)
    fields = receptive_fields(data.edge_index, data.edge_weight, num_nodes=12, num_scales=3)
    limited = receptive_fields(data.edge_index, data.edge_weight, num_nodes=12, num_scales=3, max_neighbors=12)
    assert torch.equal(fields.index, limited.index)
    torch.testing.assert_close(fields.weight, limited.weight)


def test_a_large_graph_never_becomes_dense():
    n = 200_000  # n x n numbers would need 320 GB
    node = torch.arange(n)
    fields = receptive_fields(torch.stack([node, (node + 1) % n]), num_scales=2)
    assert fields.index.size(1) == 2 * n


EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (ValueError, "'edge_weight' to be non-negative.*-1", {"edge_weight": torch.tensor([1.0, 1.0, 1.0, -1.0])}),
        (ValueError, "'edge_weight' to be finite", {"edge_weight": torch.tensor([1.0, 1.0, 1.0, torch.nan])}),
        (ValueError, "'edge_weight' to be finite", {"edge_weight": torch.tensor([1.0, 1.0, 1.0, torch.inf])}),
        (ValueError, r"'edge_weight' to have shape \[4\].*\[3\]", {"edge_weight": torch.ones(3)}),
        (ValueError, r"'edge_weight' to have shape \[4\].*\[4, 2\]", {"edge_weight": torch.ones(4, 2)}),
        (TypeError, "'edge_weight' to be floating point.*int64", {"edge_weight": torch.ones(4, dtype=torch.long)}),
        (
            ValueError,
            r"'edge_index' to have shape \[2, num_edges\].*\[3, 4\]",
            {"edge_index": torch.zeros(3, 4, dtype=torch.long)},
        ),
        (TypeError, "'edge_index' to hold integers.*float32", {"edge_index": EDGES.float()}),
        (TypeError, "'edge_index' to be a tensor.*list", {"edge_index": EDGES.tolist()}),
        (ValueError, r"'edge_index' to hold nodes in \[0, 1\].*0 to 2", {"num_nodes": 2}),
        (ValueError, "'edge_index' to hold nodes.*-1", {"edge_index": EDGES - 1}),
        (ValueError, r"'batch' to have shape \[3\].*\[2\]", {"batch": torch.zeros(2, dtype=torch.long), "num_nodes": 3}),
        (ValueError, "'batch' to be non-negative", {"batch": torch.tensor([-1, 0, 0])}),
        (ValueError, "inside one graph", {"batch": torch.tensor([0, 0, 1])}),
        (TypeError, "'batch' to hold integers.*float32", {"batch": torch.zeros(3)}),
        (ValueError, "'num_scales' to be at least 1.*0", {"num_scales": 0}),
        (TypeError, "'num_scales' to be an int.*float", {"num_scales": 2.0}),
        (ValueError, "'max_neighbors' to be at least 1.*0", {"max_neighbors": 0}),
        (TypeError, "unexpected keyword argument", {"scales": 3}),
    ],
)
def test_bad_input(error, message, arguments):
    with pytest.raises(error, match=message):
        receptive_fields(**{"edge_index": EDGES} | arguments)


def test_too_many_scales():
    with pytest.raises(ValueError, match=r"'num_scales' to be at most 1024 .got 4611686018427387904"):
        receptive_fields(torch.tensor([[0], [1]]), num_scales=2**62)
