import pytest
import torch

from torch_gic.fields.adjacency_powers import adjacency_powers, reference
from torch_gic.kernels.library import load_kernels

needs_kernel = pytest.mark.skipif(load_kernels().active == "reference", reason="no compiled kernels here")
kernel = torch.ops.torch_gic.adjacency_powers


def operands(nodes=20, entries=60, dtype=torch.float64, seed=0, low=1, high=4):
    """Entries in any order, some of them twice; few distinct weights, so that many ties occur."""
    generator = torch.Generator().manual_seed(seed)
    row, col = torch.randint(max(nodes, 1), (2, entries), generator=generator)
    return row, col, torch.randint(low, high, (entries,), generator=generator).to(dtype), nodes


def same(ours, plain):
    return all(a.dtype == b.dtype and torch.equal(a, b) for a, b in zip(ours, plain, strict=True))


@needs_kernel
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("max_neighbors", [None, 1, 4, 100])
@pytest.mark.parametrize("sizes", [(20, 60), (300, 700), (300, 200), (7, 0), (1, 1), (0, 0)])
def test_kernel_equals_the_reference_to_the_bit(sizes, max_neighbors, dtype):
    assert same(kernel(*operands(*sizes, dtype), 4, max_neighbors), reference(*operands(*sizes, dtype), 4, max_neighbors))


@needs_kernel
@pytest.mark.parametrize("max_neighbors", [None, 5])
def test_kernel_equals_the_reference_on_many_graphs_of_all_sizes(max_neighbors):
    """Blocks of 1 to 1100 nodes: those that the kernel treats as dense (up to 1024), and those that it does not."""
    rows, cols, start = [], [], 0
    for number, size in enumerate((30, 1, 129, 2, 1100, 1, 17)):
        row, col, _, _ = operands(size, 2 * size, seed=number)
        rows.append(row + start)
        cols.append(col + start)
        start += size
    row, col = torch.cat(rows), torch.cat(cols)
    generator = torch.Generator().manual_seed(0)
    order, weight = torch.randperm(row.numel(), generator=generator), torch.rand(row.numel(), generator=generator).double()
    arguments = row[order], col[order], weight, start, 7, max_neighbors
    assert same(kernel(*arguments), reference(*arguments))


@needs_kernel
@pytest.mark.parametrize("max_neighbors", [None, 3])
def test_kernel_equals_the_reference_for_weights_of_any_size(max_neighbors):
    row, col, exponent, nodes = operands(40, 120, low=-300, high=301)
    weight = 10**exponent
    weight[::7] = 0
    ours, plain = (op(row, col, weight, nodes, 9, max_neighbors) for op in (kernel, reference))
    assert same(ours, plain)
    assert bool(torch.isfinite(ours[1]).all())


def degrees(nodes, num_scales):
    """Of a larger graph, some of them zero."""
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, 40, (num_scales, nodes), generator=generator).double().t()


@needs_kernel
@pytest.mark.parametrize("max_neighbors", [None, 3])
@pytest.mark.parametrize("sizes", [(20, 60), (2000, 4000), (7, 0), (0, 0)])
def test_kernel_equals_the_reference_with_given_degrees(sizes, max_neighbors):
    arguments = *operands(*sizes), 4, max_neighbors, degrees(sizes[0], 4)
    assert same(kernel(*arguments), reference(*arguments))


@pytest.mark.parametrize("implementation", [adjacency_powers, reference])
def test_given_degrees_are_what_powers_are_divided_by(implementation):
    row, col, weight, nodes = operands()
    A = torch.zeros(nodes, nodes, dtype=torch.float64).index_put((row, col), weight, accumulate=True)
    degree = 1 + degrees(nodes, 3)
    (to_col, to_row), value = implementation(row, col, weight, nodes, 3, None, degree)
    for k in range(3):
        found = torch.zeros_like(A)
        found[to_row, to_col] = value[:, k]
        torch.testing.assert_close(found, torch.linalg.matrix_power(A, k + 1) / degree[:, k])


@pytest.mark.parametrize("max_neighbors", [None, 20])
def test_equals_dense_powers(max_neighbors):
    row, col, weight, nodes = operands()
    A = torch.zeros(nodes, nodes, dtype=torch.float64).index_put((row, col), weight, accumulate=True)
    (to_col, to_row), value = adjacency_powers(row, col, weight, nodes, 3, max_neighbors)
    for k in range(3):
        power = torch.linalg.matrix_power(A, k + 1)
        found = torch.zeros_like(A)
        found[to_row, to_col] = value[:, k]
        torch.testing.assert_close(found, power / power.sum(1).masked_fill(power.sum(1) == 0, 1))


@needs_kernel
def test_same_bits_on_any_number_of_threads():
    results, threads = [], torch.get_num_threads()
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        results.append(kernel(*operands(3000, 9000), 3, 8))
    torch.set_num_threads(threads)
    assert same(results[0], results[1])
    assert same(results[0], results[2])


def test_opcheck():
    torch.library.opcheck(kernel.default, (*operands(), 3, 4))
    torch.library.opcheck(kernel.default, (*operands(), 3, 4, degrees(20, 3)))


@needs_kernel
@pytest.mark.parametrize(
    ("position", "operand", "message"),
    [
        (0, torch.tensor([-1, 0]), r"'row' and 'col' to lie in \[0, 2\]"),
        (1, torch.tensor([0, 9]), r"'row' and 'col' to lie in \[0, 2\]"),
        (1, torch.tensor([0]), "'col' to have size 2 in dimension 0 .got 1"),
        (1, torch.tensor([0.0, 1.0]), "'col' to hold int64 values .got float32"),
        (2, torch.ones(2, dtype=torch.float16), "'weight' to hold float32 or float64 values"),
        (2, torch.ones(1, 2), "'weight' to have 1 dimensions .got 2"),
        (3, -1, "'num_nodes' to be non-negative .got -1"),
        (4, 0, "'num_scales' to be from 1 to 1024 .got 0"),
        (5, 0, "'max_neighbors' to be at least 1 .got 0"),
        (6, torch.ones(3, 2, dtype=torch.float64), "'degree' to have size 1 in dimension 1 .got 2"),
    ],
)
def test_bad_operands(position, operand, message):
    arguments = [torch.tensor([0, 1]), torch.tensor([1, 2]), torch.ones(2), 3, 1, None, None]
    arguments[position] = operand
    with pytest.raises(RuntimeError, match=message):
        kernel(*arguments)
