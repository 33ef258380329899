"""The fields' kernel against its reference, in Triton's interpreter: the same bits, as it sums in the same order."""

import pytest
import torch
from conftest import ODD_GRAPHS, odd_graph

from torch_gic.fields.adjacency_powers import reference

pytest.importorskip("triton")
from torch_gic.kernels.triton import KERNELS

kernel = KERNELS["adjacency_powers"]


def operands(nodes=20, entries=50, dtype=torch.float64, low=1, high=4):
    """Entries in any order, some of them twice, no self-loops but by chance."""
    generator = torch.Generator().manual_seed(0)
    row, col = torch.randint(max(nodes, 1), (2, entries), generator=generator)
    return row, col, torch.randint(low, high, (entries,), generator=generator).to(dtype), nodes


def same(ours, plain):
    return all(a.dtype == b.dtype and torch.equal(a, b) for a, b in zip(ours, plain, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("num_scales", [1, 2, 5])
@pytest.mark.parametrize("sizes", [(20, 50), (40, 40), (7, 0), (1, 1), (0, 0)])
def test_kernel_equals_the_reference(sizes, num_scales, dtype):
    arguments = *operands(*sizes, dtype), num_scales, None
    assert same(kernel(*arguments), reference(*arguments))


def test_given_degrees():
    arguments = *operands(), 3, None, torch.arange(60, dtype=torch.float64).view(20, 3)
    assert same(kernel(*arguments), reference(*arguments))


@pytest.mark.parametrize("name", sorted(ODD_GRAPHS))
@pytest.mark.parametrize("with_loops", [True, False])
def test_odd_graphs(name, with_loops):
    data = odd_graph(name)
    (col, row), weight = data.edge_index, data.edge_weight
    if with_loops:
        loops = torch.arange(data.num_nodes)
        row, col, weight = torch.cat([row, loops]), torch.cat([col, loops]), torch.cat([weight, torch.ones(data.num_nodes)])
    arguments = row, col, weight, data.num_nodes, 4, None
    assert same(kernel(*arguments), reference(*arguments))


def test_one_large_graph_among_small_ones():
    rows, cols, start = [], [], 0
    for size in (3, 1, 60, 2, 5):
        row, col, _, _ = operands(size, 2 * size)
        rows.append(row + start)
        cols.append(col + start)
        start += size
    row, col = torch.cat(rows), torch.cat(cols)
    weight = torch.rand(row.numel(), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    arguments = row, col, weight, start, 4, None
    assert same(kernel(*arguments), reference(*arguments))


def test_weights_of_any_size():
    row, col, exponent, nodes = operands(low=-300, high=301)
    weight = 10**exponent
    weight[::7] = 0
    arguments = row, col, weight, nodes, 6, None
    ours = kernel(*arguments)
    assert same(ours, reference(*arguments))
    assert bool(torch.isfinite(ours[1]).all())


def test_bounded_fields_are_those_of_the_reference():
    arguments = *operands(), 3, 4
    assert same(kernel(*arguments), reference(*arguments))
