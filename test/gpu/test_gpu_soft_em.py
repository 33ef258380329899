"""The kernels of soft EM against its reference, in Triton's interpreter."""

import sys
from pathlib import Path

import pytest
import torch
from torch_geometric.utils import cumsum

from torch_gic.coarsening.soft import Affinity, cut_affinity, laplacian_affinity
from torch_gic.coarsening.soft.em import exponents, reference

pytest.importorskip("triton")
sys.path.append(str(Path(__file__).parents[1] / "coarsening"))
from clusters import batch_of_graphs, settings

import torch_gic.kernels.triton.soft_em  # noqa: F401
from torch_gic.kernels.triton import KERNELS

module = sys.modules["torch_gic.kernels.triton.soft_em"]


def arguments(kernel="cut", beta=4.0, sizes=(6, 1, 0, 9, 30), num_iterations=3):
    graph, batch, counts = batch_of_graphs(sizes)
    _, w, rank, ptr = settings(graph, batch)
    affinity = cut_affinity(graph, w, batch, counts.numel()) if kernel == "cut" else laplacian_affinity(graph)
    offset = cumsum(counts)
    start = rank % counts[batch] + offset[batch]
    precision = torch.full((counts.numel(),), beta, dtype=torch.float64)
    return *affinity, w, rank, ptr, offset, precision, start, num_iterations


@pytest.mark.parametrize("kernel", ["cut", "laplacian"])
@pytest.mark.parametrize("beta", [0.1, 4.0, 1e6])
@pytest.mark.parametrize("num_iterations", [0, 1, 4])
def test_kernel_equals_the_reference(kernel, beta, num_iterations):
    inputs = arguments(kernel, beta, num_iterations=num_iterations)
    result = KERNELS["soft_em"](*inputs)
    assert torch.equal(result, reference(*inputs))
    assert torch.equal(result.unique(), torch.arange(int(inputs[7][-1])))


@pytest.mark.parametrize("tile", [256, 4])  # of 4: several tiles for the clusters of one graph
def test_responsibilities_equal_those_of_the_reference(tile, monkeypatch):
    monkeypatch.setattr(module, "TILE", tile)
    diagonal, rowptr, col, value, w, _, ptr, offset, beta, start, num_iterations = arguments(sizes=(5, 26, 2))
    blocks = module._blocks(ptr, offset, start.numel())
    ours = module.responsibilities(blocks, diagonal, rowptr, col, value, w, ptr, offset, beta, start, num_iterations)

    batch, row = blocks.graph, Affinity(diagonal, rowptr, col, value).row
    matrix = torch.sparse_coo_tensor(torch.stack([row, col]), value, (33, 33), is_coalesced=True)
    exists = torch.arange(blocks.most) < offset.diff()[batch].unsqueeze(1)
    p = torch.nn.functional.one_hot(start - offset[batch], blocks.most).double()
    for _ in range(num_iterations):
        p = exponents(p, matrix, diagonal, w, batch, beta).masked_fill(~exists, -torch.inf).softmax(dim=1)
    assert ours.numel() == 5 * 2 + 26 * 7 + 2 * 1 < p.numel()
    torch.testing.assert_close(ours, p[exists], rtol=1e-9, atol=1e-12)
    assert float((p.amax(dim=1) < 0.99).double().mean()) > 0.1  # soft ones among them


def test_non_contiguous():
    *inputs, num_iterations = arguments()
    strided = [torch.stack([value, value], dim=1)[:, 0] for value in inputs]
    assert torch.equal(KERNELS["soft_em"](*strided, num_iterations), KERNELS["soft_em"](*inputs, num_iterations))


def test_no_nodes():
    inputs = arguments()
    empty = torch.empty(0, dtype=torch.float64), torch.empty(0, dtype=torch.long)
    none = (
        empty[0],
        torch.zeros(1).long(),
        empty[1],
        empty[0],
        empty[0],
        empty[1],
        torch.zeros(1).long(),
        torch.zeros(1).long(),
    )
    assert KERNELS["soft_em"](*none, empty[0], empty[1], inputs[-1]).numel() == 0
