"""The gradient of coarsening: its equation, its derivative, and its backends."""

import os
import subprocess
import sys
from itertools import pairwise

import pytest
import torch
from clusters import batch_of_graphs, settings, start
from torch_geometric.utils import cumsum

from torch_gic.coarsening import responsibility
from torch_gic.coarsening.responsibility import reference, reference_backward
from torch_gic.coarsening.soft import cut_affinity, soft_responsibility


def operands(sizes=(30, 1, 47, 0, 12), scale=1.0):
    graph, batch, counts = batch_of_graphs(sizes)
    influence = 0.5 + torch.rand(batch.numel(), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    _, weight, _, ptr = settings(graph, batch, influence)
    offset = cumsum(counts)
    beta = scale * torch.arange(1, counts.numel() + 1, dtype=torch.float64)
    return graph, weight, ptr, offset, start(batch, counts), beta, batch


@pytest.mark.parametrize("scale", [0.1, 1.0, 100.0])
def test_is_that_of_the_mixture(scale):
    """The equation of the mixture, with the inner products of the cut in place."""
    graph, weight, ptr, offset, cluster, beta, batch = operands(scale=scale)
    affinity = cut_affinity(graph, weight, batch, beta.numel())
    expected = soft_responsibility(affinity, weight, beta, batch, cluster, int(offset[-1]))
    for implementation in (torch.ops.torch_gic.responsibility, reference):
        torch.testing.assert_close(implementation(weight, *graph, ptr, offset, cluster, beta), expected)


def test_gradient():
    graph, weight, ptr, offset, cluster, beta, _ = operands((6, 1, 9), scale=0.3)
    # The lightest node decides the constant of the affinity, which no gradient is taken of.
    fixed = torch.zeros_like(weight, dtype=torch.bool)
    degree = graph.degree
    for first, last in pairwise(ptr):
        fixed[first + (degree / weight)[first:last].argmax()] = True

    def own(free):
        return responsibility(graph, torch.where(fixed, weight, free), ptr, offset, cluster, beta)

    free = weight.clone().requires_grad_()
    assert torch.autograd.gradcheck(own, free)
    assert torch.autograd.gradgradcheck(own, free)
    assert torch.autograd.functional.jacobian(own, free).abs().max() > 1e-3


def test_backward_equals_the_reference():
    graph, weight, ptr, offset, cluster, beta, _ = operands((30, 1, 47, 0, 400))
    grad = torch.randn(weight.numel(), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    arguments = grad, weight, *graph, ptr, offset, cluster, beta
    ours = torch.ops.torch_gic.responsibility_backward(*arguments)
    torch.testing.assert_close(ours, reference_backward(*arguments), rtol=1e-6, atol=1e-7)


def test_opcheck():
    graph, weight, ptr, offset, cluster, beta, _ = operands((6, 3))
    arguments = weight.requires_grad_(), *graph, ptr, offset, cluster, beta
    torch.library.opcheck(torch.ops.torch_gic.responsibility, arguments)


def test_bad_operands():
    graph, weight, ptr, offset, cluster, beta, _ = operands((6, 3))
    with pytest.raises(RuntimeError, match="'cluster' of node 0 to lie in"):
        torch.ops.torch_gic.responsibility(weight, *graph, ptr, offset, cluster + 99, beta)
    with pytest.raises(RuntimeError, match="edge to stay inside one graph"):
        torch.ops.torch_gic.responsibility(weight, graph.rowptr, graph.col + 99, graph.weight, ptr, offset, cluster, beta)


def test_the_reference_trains_where_there_is_no_kernel():
    """Behind the dispatcher, which has switched autograd off by then, as on machines without a compiler."""
    program = (
        "import torch, torch_gic; pool = torch_gic.VIGMMPool(3, 0.5); torch.nn.init.normal_(pool.select.lin.weight);"
        " pool(torch.randn(6, 3), torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])).x.square().sum().backward();"
        " assert pool.select.lin.weight.grad.abs().max() > 0"
    )
    environment = os.environ | {"TORCH_GIC_KERNELS": "reference", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
