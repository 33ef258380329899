import itertools

import pytest
import torch
from clusters import batch_of_graphs, cut_objective, settings, weighted
from conftest import random_graph
from torch_geometric.utils import cumsum

from torch_gic.coarsening import undirected_graph
from torch_gic.coarsening.soft import (
    Affinity,
    cut_affinity,
    laplacian_affinity,
    soft_em,
    soft_responsibility,
)
from torch_gic.coarsening.soft.em import exponents, reference
from torch_gic.kernels.library import has_kernel, load_kernels

ONE = torch.tensor([0, 12])  # the boundaries of one graph of twelve nodes
START = torch.arange(12) % 3


def setting(seed=0, n=12):
    data = random_graph(n, 20, seed=seed, directed=True)
    batch = torch.zeros(n, dtype=torch.long)
    graph = undirected_graph(data.edge_index, data.edge_weight, batch, 1)
    weight = torch.rand(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.5
    return data, graph, weight, batch


def dense(graph, n):
    return torch.zeros(n, n, dtype=torch.float64).index_put((graph.row, graph.col), graph.weight)


def as_dense(kernel):
    K = torch.diag(kernel.diagonal)
    return K.index_put((kernel.row, kernel.col), kernel.value)


def test_kernels_equal_their_dense_formulas():
    _, graph, w, batch = setting(n=10)
    A, I = dense(graph, 10), torch.eye(10, dtype=torch.float64)  # noqa: E741
    assert A.sum(1).min() > 0
    degree, W = A.sum(1), torch.diag(1 / w)
    shift = 2 * (degree / w).max()
    expected = {
        "cut": shift * W - W @ (torch.diag(degree) - A) @ W,
        "laplacian": I - torch.diag(degree**-0.5) @ A @ torch.diag(degree**-0.5),
    }
    kernels = {"cut": cut_affinity(graph, w, batch, 1), "laplacian": laplacian_affinity(graph)}
    for name, K in expected.items():
        torch.testing.assert_close(as_dense(kernels[name]), K)


@pytest.mark.parametrize("seed", range(5))
def test_the_cut_affinity_is_positive_semidefinite_and_its_distortion_is_the_cut(seed):
    # The claim of docs/coarsening.md, with vectors phi at hand: K = phi phi^T.
    _, graph, w, batch = setting(seed)
    values, vectors = torch.linalg.eigh(as_dense(cut_affinity(graph, w, batch, 1)))
    assert values.min() > -1e-12
    phi = vectors * values.clamp(min=0).sqrt()
    gaps = []
    for start in range(5):
        cluster = torch.randperm(12, generator=torch.Generator().manual_seed(start)) % 3
        distortion = 0.0
        for c in range(3):
            members = cluster == c
            mean = (w[members, None] * phi[members]).sum(0) / w[members].sum()
            distortion += float((w[members] * (phi[members] - mean).square().sum(1)).sum())
        gaps.append(distortion - cut_objective(graph, w, cluster))
    assert max(gaps) - min(gaps) < 1e-9  # the same constant for every partition


@pytest.mark.parametrize("beta", [0.5, 8.0])
def test_no_iteration_lowers_the_likelihood(beta):
    _, graph, w, batch = setting(1)
    kernel = cut_affinity(graph, w, batch, 1)
    matrix = torch.sparse_coo_tensor(torch.stack([kernel.row, kernel.col]), kernel.value, (12, 12))
    p, history = torch.nn.functional.one_hot(START, 3).double(), []
    for _ in range(30):
        logits = exponents(p, matrix, kernel.diagonal, w, batch, torch.tensor([beta], dtype=torch.float64))
        history.append(float(logits.logsumexp(1).sum()))
        p = logits.softmax(1)
    assert all(after >= before - 1e-10 for before, after in itertools.pairwise(history))
    assert history[-1] > history[0]


def test_one_iteration_equals_the_mixture_in_feature_space():
    # For K = phi phi^T with vectors phi at hand, plain EM on these vectors is the oracle.
    _, _, w, batch = setting(3)
    phi = torch.randn(12, 6, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    K = phi @ phi.t()
    off = (K - torch.diag(K.diagonal())).to_sparse()
    kernel = Affinity(K.diagonal(), cumsum(torch.bincount(off.indices()[0])), off.indices()[1], off.values())
    beta = torch.tensor([2.0], dtype=torch.float64)

    r = torch.nn.functional.one_hot(START, 3).double()
    mu = (r * w[:, None]).t() @ phi / (r * w[:, None]).sum(0)[:, None]
    squared = (phi[:, None] - mu).square().sum(-1)
    expected = (r.mean(0).log() - 2.0 / 2 * w[:, None] * squared).softmax(1)
    torch.testing.assert_close(exponents(r, off, kernel.diagonal, w, batch, beta).softmax(1), expected)
    cluster = soft_em(kernel, w, torch.arange(12), ONE, torch.tensor([0, 3]), beta, START, 1)
    assert torch.equal(cluster, expected.argmax(1))
    # Every node has every cluster among its neighbours here, so nothing is left out.
    own = expected.gather(1, START[:, None]).squeeze(1)
    torch.testing.assert_close(soft_responsibility(kernel, w, beta, batch, START, 3), own)


@pytest.mark.parametrize("kernel", ["cut", "laplacian"])
@pytest.mark.parametrize("beta", [0.1, 4.0, 1e6])
def test_kernel_equals_reference(kernel, beta):
    load_kernels()
    if not has_kernel("soft_em", "CPU"):
        pytest.skip("no compiler")
    graph, batch, counts = batch_of_graphs()
    _, w, rank, ptr = settings(graph, batch)
    affinity = cut_affinity(graph, w, batch, counts.numel()) if kernel == "cut" else laplacian_affinity(graph)
    offset = cumsum(counts)
    start = (rank % counts[batch]) + offset[batch]
    precision = torch.full((counts.numel(),), beta, dtype=torch.float64)
    for num_iterations in (0, 1, 10):
        arguments = *affinity, w, rank, ptr, offset, precision, start, num_iterations
        expected = reference(*arguments)
        assert torch.equal(expected.unique(), torch.arange(int(offset[-1])))
        assert torch.equal(torch.ops.torch_gic.soft_em(*arguments), expected)


def test_large_graphs_on_several_threads():
    load_kernels()
    if not has_kernel("soft_em", "CPU"):
        pytest.skip("no compiler")
    graph, batch, _ = batch_of_graphs(sizes=(10, 20_000, 30))
    _, w, rank, ptr = settings(graph, batch)
    offset = torch.tensor([0, 2, 5, 7])
    start = rank % offset.diff()[batch] + offset[batch]
    kernel, beta = cut_affinity(graph, w, batch, 3), torch.tensor([4.0, 8e4, 4.0], dtype=torch.float64)
    threads, results = torch.get_num_threads(), []
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        results.append(soft_em(kernel, w, rank, ptr, offset, beta, start, 3))
    torch.set_num_threads(threads)
    assert not torch.equal(results[0], start)
    for result in results:
        assert torch.equal(result, results[0])
    assert torch.equal(reference(*kernel, w, rank, ptr, offset, beta, start, 3), results[0])


def test_a_cluster_that_loses_all_nodes_takes_one_back():
    _, graph, w, _ = setting(2)
    beta = torch.tensor([1e-3], dtype=torch.float64)  # flat responsibilities: the largest cluster takes all
    start = torch.tensor([0] * 10 + [1, 2])
    arguments = (laplacian_affinity(graph), w, torch.arange(12), ONE, torch.tensor([0, 3]), beta, start, 20)
    assert soft_em(*arguments).tolist() == start.tolist()


def test_responsibility_leaves_out_only_clusters_without_a_neighbour():
    _, graph, w, batch = setting(5)
    kernel, beta = cut_affinity(graph, w, batch, 1), torch.tensor([3.0], dtype=torch.float64)
    matrix = torch.sparse_coo_tensor(torch.stack([kernel.row, kernel.col]), kernel.value, (12, 12))
    cluster = torch.arange(12) // 2
    p = torch.nn.functional.one_hot(cluster, 6).double()
    logits = exponents(p, matrix, kernel.diagonal, w, batch, beta)
    near = (dense(graph, 12) @ p > 0) | (p > 0)
    assert not bool(near.all())
    expected = logits.masked_fill(~near, -torch.inf).softmax(1).gather(1, cluster[:, None]).squeeze(1)
    torch.testing.assert_close(soft_responsibility(kernel, w, beta, batch, cluster, 6), expected)


@pytest.mark.parametrize("kernel", ["cut", "laplacian"])
def test_responsibility_is_differentiable_in_the_node_weights(kernel):
    _, graph, w, batch = setting(2)
    light = w.clone()
    light[0] = 1e-3  # decides the shift of the kernel, which is a constant of the graph: no partition depends on it

    def own(v):
        weight = torch.cat([light[:1], v])
        affinity = cut_affinity(graph, weight, batch, 1) if kernel == "cut" else laplacian_affinity(graph)
        return soft_responsibility(affinity, weight, torch.tensor([0.1], dtype=torch.float64), batch, START, 3)

    assert torch.autograd.gradcheck(own, light[1:].requires_grad_())
    assert torch.autograd.functional.jacobian(own, light[1:]).abs().max() > 1e-3


@pytest.mark.parametrize("implementation", [torch.ops.torch_gic.soft_em, reference])
def test_a_start_with_an_empty_cluster(implementation):
    graph, batch = weighted([(0, 1)], 2), torch.zeros(2, dtype=torch.long)
    _, w, rank, ptr = settings(graph, batch)
    kernel, beta = cut_affinity(graph, w, batch, 1), torch.ones(1, dtype=torch.float64)
    with pytest.raises((RuntimeError, ValueError), match="'cluster' to leave none empty"):
        implementation(*kernel, w, rank, ptr, torch.tensor([0, 2]), beta, torch.tensor([1, 1]), 1)


def test_opcheck_of_em():
    graph, batch, counts = batch_of_graphs()
    _, w, rank, ptr = settings(graph, batch)
    kernel, offset = cut_affinity(graph, w, batch, counts.numel()), cumsum(counts)
    beta = torch.ones(counts.numel(), dtype=torch.float64)
    start = (rank % counts[batch]) + offset[batch]
    torch.library.opcheck(torch.ops.torch_gic.soft_em, (*kernel, w, rank, ptr, offset, beta, start, 2))
