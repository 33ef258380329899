"""Features and edges of clusters, by every backend."""

import pytest
import torch

from torch_gic.coarsening import cluster_edges, cluster_max, connect, reduce
from torch_gic.kernels.library import has_kernel, load_kernels


def features(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(20, 7, generator=generator, dtype=dtype)
    x[::3] = 0  # ties
    return x, torch.arange(20) % 6


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_largest_of_each_channel(dtype):
    x, cluster = features(dtype)
    out = cluster_max(x, cluster, 7)
    for c in range(6):
        assert torch.equal(out[c], x[cluster == c].amax(0))
    assert torch.equal(out[6], torch.zeros(7, dtype=dtype))


def test_nothing_hides_a_nan():
    x, cluster = features()
    for i in range(20):
        broken = x.clone()
        broken[i, 2] = torch.nan
        assert torch.equal(cluster_max(broken, cluster, 6).isnan().nonzero(), torch.tensor([[i % 6, 2]]))


def test_equal_largest_share_the_gradient():
    x = torch.tensor([[1.0], [1.0], [0.0], [-2.0]], requires_grad=True)
    cluster_max(x, torch.tensor([0, 0, 0, 1]), 2).backward(torch.tensor([[3.0], [5.0]]))
    assert x.grad.view(-1).tolist() == [1.5, 1.5, 0.0, 5.0]


def test_gradients():
    x, cluster = features()
    x = (x + 1e-2 * torch.arange(20).unsqueeze(1)).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: cluster_max(x, cluster, 6), x)
    assert torch.autograd.gradgradcheck(lambda x: cluster_max(x, cluster, 6).square(), x)
    grad, out = torch.randn(6, 7, dtype=torch.float64), cluster_max(x, cluster, 6)
    expected = reduce.reference_backward(grad, features()[0], out.detach(), cluster)
    assert torch.equal(torch.ops.torch_gic.cluster_max_backward(grad, features()[0], out.detach(), cluster), expected)


def test_edges_between_clusters():
    generator = torch.Generator().manual_seed(0)
    for num_edges in (0, 1, 200):
        edges, cluster = torch.randint(20, (2, num_edges), generator=generator), torch.arange(20) % 6
        for ours, expected in zip(cluster_edges(edges, cluster, 6), connect.reference(edges, cluster, 6), strict=True):
            assert torch.equal(ours, expected)


def test_opcheck():
    x, cluster = features()
    torch.library.opcheck(torch.ops.torch_gic.cluster_max, (x.requires_grad_(), cluster, 6))
    torch.library.opcheck(torch.ops.torch_gic.cluster_edges, (torch.randint(20, (2, 9)), cluster, 6))


def test_bad_operands():
    load_kernels()
    if not has_kernel("cluster_max", "CPU"):
        pytest.skip("no compiler")
    x, cluster = features()
    with pytest.raises(RuntimeError, match=r"'cluster' to lie in \[0, 4\]"):
        cluster_max(x, cluster, 5)
    with pytest.raises(RuntimeError, match=r"'edge_index' to lie in \[0, 19\]"):
        cluster_edges(torch.tensor([[0], [20]]), cluster, 6)
