import pytest
import torch

from torch_gic._library import load_kernels
from torch_gic.ops.extend_walks import extend_walks, reference

needs_kernel = pytest.mark.skipif(load_kernels().active == "reference", reason="no compiled kernels here")
kernel = torch.ops.torch_gic.extend_walks


def operands(nodes=20, entries=60, scales=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    row = torch.randint(nodes, (entries,), generator=generator).sort().values
    col = torch.randint(nodes, (entries,), generator=generator)
    value = torch.randint(1, 4, (scales, entries), generator=generator).double() / 4  # many ties
    return row, col, value, nodes


@needs_kernel
@pytest.mark.parametrize("max_neighbors", [None, 1, 4, 100])
@pytest.mark.parametrize("sizes", [(20, 60, 3), (300, 700, 4), (7, 0, 2), (1, 1, 1), (0, 0, 2)])
def test_kernel_equals_the_reference_to_the_bit(sizes, max_neighbors):
    row, col, value, nodes = operands(*sizes) if sizes[0] else (*torch.empty(2, 0).long(), torch.empty(2, 0).double(), 0)
    for ours, plain in zip(
        kernel(row, col, value, nodes, max_neighbors), reference(row, col, value, nodes, max_neighbors), strict=True
    ):
        assert torch.equal(ours, plain)


def test_equals_dense_products():
    row, col, value, nodes = operands()
    out_row, out_col, weight = extend_walks(row, col, value, nodes, None)
    product = torch.eye(nodes, dtype=torch.float64)
    for k in range(3):
        product = product @ torch.zeros_like(product).index_put((row, col), value[k], accumulate=True)
        found = torch.zeros_like(product)
        found[out_row, out_col] = weight[:, k]
        torch.testing.assert_close(found, product)


@needs_kernel
def test_same_bits_on_any_number_of_threads():
    results, threads = [], torch.get_num_threads()
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        results.append(kernel(*operands(500, 1500, 3), 8))
    torch.set_num_threads(threads)
    assert all(torch.equal(a, b) for other in results[1:] for a, b in zip(results[0], other, strict=True))


def test_opcheck():
    torch.library.opcheck(kernel.default, (*operands(), 4))


@needs_kernel
@pytest.mark.parametrize(
    ("position", "operand", "message"),
    [
        (0, torch.tensor([1, 0]), "'row' to be sorted"),
        (1, torch.tensor([0, 9]), r"'col' to lie in \[0, 2\]"),
        (2, torch.ones(1, 2), "'transition' to hold float64 values"),
        (2, torch.ones(1, 3).double(), "'transition' to have size 2 in dimension 1 .got 3"),
    ],
)
def test_bad_operands(position, operand, message):
    arguments = [torch.tensor([0, 1]), torch.tensor([1, 2]), torch.ones(1, 2).double()]
    arguments[position] = operand
    with pytest.raises(RuntimeError, match=message):
        kernel(*arguments, 3, None)
