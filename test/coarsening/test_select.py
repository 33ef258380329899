"""All stages as one operation, by every backend, against the stages in plain PyTorch."""

import pytest
import torch
from clusters import batch_of_graphs, start
from conftest import ODD_GRAPHS, odd_graph
from torch_geometric.utils import cumsum

from torch_gic.coarsening import coarsen
from torch_gic.coarsening.select import reference
from torch_gic.kernels.library import has_kernel, load_kernels


@pytest.fixture(params=["cpp", "triton"])
def backend(request):
    """The operation by this backend, and how small graphs have to be for it."""
    if request.param == "triton":
        pytest.importorskip("triton")
        from torch_gic.kernels.triton import KERNELS

        return KERNELS["coarsen"], 10
    load_kernels()
    if not has_kernel("coarsen", "CPU"):
        pytest.skip("no compiler")
    return torch.ops.torch_gic.coarsen, 1


def operands(sizes=(30, 1, 47, 0, 12, 80), unit=False, ratio=0.25, count=None, num_iterations=3, max_size=0, by_degree=True):
    graph, batch, _ = batch_of_graphs(sizes, unit=unit)
    influence = torch.ones(batch.numel(), dtype=torch.float64)
    if not unit:
        influence += torch.rand(batch.numel(), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    edges = torch.stack([graph.row, graph.col])
    return [edges, graph.weight, influence, batch, len(sizes), ratio, count, num_iterations, max_size, by_degree, None]


def assert_same(ours, expected):
    for one, other in zip(ours, expected, strict=True):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)


@pytest.mark.parametrize("unit", [True, False])  # many ties, and none
@pytest.mark.parametrize("ratio", [0.1, 0.25, 0.8])
@pytest.mark.parametrize("num_iterations", [0, 1, 30])
def test_backends_equal_the_reference(backend, unit, ratio, num_iterations):
    operation, share = backend
    sizes = (30, 1, 47, 0, 12, 400) if share == 1 else (9, 1, 21, 0, 5)
    arguments = operands(sizes, unit, ratio, num_iterations=num_iterations)
    assert_same(operation(*arguments), reference(*arguments))


@pytest.mark.parametrize("name", sorted(ODD_GRAPHS))
@pytest.mark.parametrize("count", [1, 2])
def test_odd_graphs(backend, name, count):
    data = odd_graph(name)
    batch = torch.zeros(data.num_nodes, dtype=torch.long)
    graphs = data.edge_index, data.edge_weight, torch.ones(data.num_nodes).double(), batch, min(data.num_nodes, 1)
    arguments = (*graphs, 1.0, count, 5, 0, True, None)
    assert_same(backend[0](*arguments), reference(*arguments))


@pytest.mark.parametrize("num_clusters", [2, 10, None])
def test_from_any_start(backend, num_clusters):
    sizes = (30, 1, 47, 0, 12, 400) if backend[1] == 1 else (9, 1, 21, 0, 5)
    batch = batch_of_graphs(sizes)[1]
    size = torch.bincount(batch, minlength=len(sizes))
    ratio, count = (0.25, None) if num_clusters is None else (1.0, num_clusters)
    counts = (size + 3) // 4 if num_clusters is None else size.clamp(max=num_clusters)
    for num_iterations in (0, 1, 20):
        arguments = operands(sizes, ratio=ratio, count=count, num_iterations=num_iterations)
        arguments[-1] = start(batch, counts)
        found = backend[0](*arguments)
        assert_same(found, reference(*arguments))
        assert torch.equal(found[0], arguments[-1]) == (num_iterations == 0)


@pytest.mark.parametrize("max_size", [5, 6, 9])
def test_bounded_sizes(backend, max_size):
    for unit in (True, False):
        arguments = operands((30, 1, 47, 0, 12, 100), unit=unit, num_iterations=20, max_size=max_size)
        found = backend[0](*arguments)
        assert_same(found, reference(*arguments))
        assert int(torch.bincount(found[0]).max()) <= max_size


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sizes", [(30, 1, 0, 12), (2,), (9000, 10)])
def test_hubs_and_weights_of_any_size(dtype, sizes):
    load_kernels()
    generator = torch.Generator().manual_seed(0)
    size = torch.tensor(sizes)
    ptr, batch = cumsum(size), torch.repeat_interleave(torch.arange(len(sizes)), size)
    edges = [b + torch.randint(n, (2, 5 * n), generator=generator) for b, n in zip(ptr, sizes, strict=False) if n]
    edge_index = torch.cat(edges, dim=1)
    edge_index[0, edge_index[1] < sizes[0]] *= (
        torch.rand(int((edge_index[1] < sizes[0]).sum()), generator=generator) > 0.2
    ).long()
    weight = (torch.rand(edge_index.size(1), generator=generator, dtype=dtype) - 0.1).clamp(min=0)  # some are not there
    weight[:3] = torch.tensor([1e-30, 1e30, 0])
    influence = torch.rand(batch.numel(), generator=generator, dtype=torch.float64).round(decimals=1) + 0.1
    arguments = edge_index, weight, influence, batch, len(sizes), 0.3, None, 3, 0, True, None
    assert_same(torch.ops.torch_gic.coarsen(*arguments), reference(*arguments))


@pytest.mark.parametrize("by_degree", [True, False])
def test_without_weights(by_degree):
    arguments = operands(unit=True, by_degree=by_degree)
    arguments[1] = torch.ones_like(arguments[1])
    ones = torch.ops.torch_gic.coarsen(*arguments)
    arguments[1] = None
    assert_same(torch.ops.torch_gic.coarsen(*arguments), ones)
    assert torch.equal(ones[5], torch.ones_like(ones[5])) == (not by_degree)


def test_large_graphs_on_several_threads():
    arguments = operands((10, 20_000, 30), num_iterations=5)
    threads, results = torch.get_num_threads(), []
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        results.append(torch.ops.torch_gic.coarsen(*arguments))
    torch.set_num_threads(threads)
    for result in results[1:]:
        assert_same(result, results[0])
    assert_same(results[0], reference(*arguments))


def test_number_of_clusters_is_exact():
    empty = torch.empty(2, 0, dtype=torch.long)
    batch, influence = torch.zeros(100, dtype=torch.long), torch.ones(100)
    for ratio, wanted in ((0.07, 7), (0.29, 29), (0.58, 58), (0.001, 1), (1.0, 100), (3, 3), (500, 100)):
        assert coarsen(empty, None, influence, batch, 1, ratio, 1).batch.numel() == wanted


def test_opcheck():
    arguments = operands((12, 1, 0, 8), num_iterations=2)
    utilities = "test_schema", "test_faketensor", "test_autograd_registration"
    torch.library.opcheck(torch.ops.torch_gic.coarsen, arguments, test_utils=utilities)


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (0, torch.tensor([[0], [2]]), r"'edge_index' to lie in \[0, 1\]"),
        (0, torch.tensor([[0.0], [1.0]]), "'edge_index' to hold int64"),
        (1, torch.ones(2), "'edge_weight' to have size 1"),
        (2, torch.tensor([1.0, torch.nan], dtype=torch.float64), "'influence' to be positive and finite .got nan"),
        (2, torch.tensor([1.0, 0.0], dtype=torch.float64), "'influence' to be positive and finite .got 0"),
        (2, torch.ones(2), "'influence' to hold float64"),
        (3, torch.tensor([0, 1]), "stay inside one graph of 'batch'"),
        (3, torch.tensor([1, 0]), "'batch' to be sorted"),
        (4, 0, r"'batch' to lie in \[0, -1\]"),
        (6, 0, "'count' to be at least 1 .got 0"),
        (8, 1, "'max_size' to leave room for the 2 nodes of graph 0 .got 1"),
        (10, torch.tensor([0, 2]), r"'start' of node 1 to lie in \[0, 0\] .got 2"),
    ],
)
def test_bad_operands(position, value, message):
    load_kernels()
    if not has_kernel("coarsen", "CPU"):
        pytest.skip("no compiler")
    batch = torch.zeros(2, dtype=torch.long)
    graphs = torch.tensor([[0], [1]]), torch.ones(1), torch.ones(2).double(), batch, 2
    arguments = [*graphs, 0.5, None, 2, 0, True, None]
    arguments[position] = value
    with pytest.raises(RuntimeError, match=message):
        torch.ops.torch_gic.coarsen(*arguments)


def test_a_start_with_an_empty_cluster():
    load_kernels()
    if not has_kernel("coarsen", "CPU"):
        pytest.skip("no compiler")
    arguments = operands((4,), ratio=0.5)
    arguments[-1] = torch.zeros(4, dtype=torch.long)
    with pytest.raises(RuntimeError, match="'start' to leave none empty"):
        torch.ops.torch_gic.coarsen(*arguments)
