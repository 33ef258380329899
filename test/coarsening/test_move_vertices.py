import itertools

import pytest
import torch
from clusters import batch_of_graphs, cut_objective, settings, weighted
from torch_geometric.utils import cumsum

from torch_gic.coarsening import merge_clusters, move_vertices
from torch_gic.coarsening.move_vertices import reference
from torch_gic.kernels.library import has_kernel, load_kernels


def start(batch, num_clusters, seed=0):
    """A random partition without empty clusters."""
    generator = torch.Generator().manual_seed(seed)
    cluster, offset = torch.empty_like(batch), cumsum(num_clusters)
    for g in batch.unique():
        members = (batch == g).nonzero().view(-1)
        order = torch.randperm(members.numel(), generator=generator)
        cluster[members[order]] = torch.arange(members.numel()) % num_clusters[g] + offset[g]
    return cluster


def test_a_vertex_goes_where_it_belongs():
    clique = [*itertools.combinations(range(4), 2), *itertools.combinations(range(4, 8), 2), (3, 4)]
    graph, batch = weighted(clique, 8), torch.zeros(8, dtype=torch.long)
    wrong = torch.tensor([0, 0, 0, 1, 1, 1, 1, 1])
    moved = move_vertices(*settings(graph, batch), torch.tensor([0, 2]), wrong, 1)
    assert moved.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize("num_clusters", [2, None])
@pytest.mark.parametrize("seed", range(5))
def test_no_iteration_raises_the_cut(seed, num_clusters):
    graph, batch, counts = batch_of_graphs(seed=seed)
    if num_clusters is not None:
        counts = torch.bincount(batch, minlength=counts.numel()).clamp(max=num_clusters)
    influence = 0.5 + torch.rand(batch.numel(), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    arguments, offset = settings(graph, batch, influence), cumsum(counts)
    cluster = start(batch, counts, seed)
    history = [cut_objective(graph, arguments[3], cluster)]
    for _ in range(40):
        cluster = move_vertices(*arguments, offset, cluster, 1)
        assert torch.equal(cluster.unique(), torch.arange(int(offset[-1])))  # none is emptied
        history.append(cut_objective(graph, arguments[3], cluster))
    assert all(after <= before + 1e-12 for before, after in itertools.pairwise(history))
    assert history[-1] < 0.9 * history[0]
    assert torch.equal(move_vertices(*arguments, offset, start(batch, counts, seed), 40), cluster)


def test_in_the_end_no_move_to_a_neighbour_is_left_that_lowers_the_cut():
    graph, batch, counts = batch_of_graphs(sizes=(25,))
    arguments, offset = settings(graph, batch), cumsum(counts)
    cluster = move_vertices(*arguments, offset, start(batch, counts), 1000)
    lowest = cut_objective(graph, arguments[3], cluster)
    for i, c in zip(graph.row.tolist(), cluster[graph.col].tolist(), strict=True):
        other = cluster.clone()
        other[i] = c
        if other.unique().numel() == counts[0]:
            assert cut_objective(graph, arguments[3], other) > lowest - 1e-9


def test_close_to_the_best_partition_there_is():
    graph, batch, _ = batch_of_graphs(sizes=(9,), seed=3)
    arguments, offset = settings(graph, batch), torch.tensor([0, 3])
    found = move_vertices(*arguments, offset, merge_clusters(*arguments, torch.tensor([3])), 20)
    partitions = (torch.tensor(p) for p in itertools.product(range(3), repeat=9) if len(set(p)) == 3)
    best = min(cut_objective(graph, arguments[3], p) for p in partitions)
    assert cut_objective(graph, arguments[3], found) <= 1.1 * best


@pytest.mark.parametrize("num_clusters", [2, 10, None])
def test_kernel_equals_reference(num_clusters):
    load_kernels()
    if not has_kernel("move_vertices", "CPU"):
        pytest.skip("no compiler")
    for unit in (True, False):
        graph, batch, counts = batch_of_graphs(sizes=(30, 1, 47, 0, 12, 400), unit=unit)
        if num_clusters is not None:
            counts = torch.bincount(batch, minlength=counts.numel()).clamp(max=num_clusters)
        arguments = (*settings(graph, batch), cumsum(counts), start(batch, counts))
        for num_iterations in (0, 1, 2, 50):
            expected = reference(*arguments, num_iterations)
            assert torch.equal(move_vertices(*arguments, num_iterations), expected)


def test_large_graphs_on_several_threads():
    load_kernels()
    if not has_kernel("move_vertices", "CPU"):
        pytest.skip("no compiler")
    graph, batch, counts = batch_of_graphs(sizes=(10, 20_000, 30))
    arguments, offset = settings(graph, batch), cumsum(counts)
    threads, results = torch.get_num_threads(), []
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        cluster = merge_clusters(*arguments, counts)
        results.append((cluster, move_vertices(*arguments, offset, cluster, 5)))
    torch.set_num_threads(threads)
    for merged, moved in results:
        assert torch.equal(merged, results[0][0])
        assert torch.equal(moved, results[0][1])
    assert torch.equal(reference(*arguments, offset, results[0][0], 5), results[0][1])


def test_a_vertex_that_is_nearly_all_of_its_cluster_stays():
    graph = weighted([(0, 1), (1, 2), (2, 3)], 4, [1e-30, 1.0, 1.0])
    arguments = settings(graph, torch.zeros(4, dtype=torch.long))
    cluster = torch.tensor([0, 0, 1, 1])  # without vertex 1, the weight of cluster 0 would be rounding
    for implementation in (move_vertices, reference):
        assert implementation(*arguments, torch.tensor([0, 2]), cluster, 20).unique().numel() == 2


def test_opcheck():
    graph, batch, counts = batch_of_graphs()
    arguments = (*settings(graph, batch), cumsum(counts), start(batch, counts), 2)
    torch.library.opcheck(torch.ops.torch_gic.move_vertices, arguments)


def test_bad_start():
    load_kernels()
    if not has_kernel("move_vertices", "CPU"):
        pytest.skip("no compiler")
    arguments = settings(weighted([(0, 1)], 2), torch.zeros(2, dtype=torch.long))
    with pytest.raises(RuntimeError, match=r"'cluster' of vertex 1 to lie in \[0, 1\] .got 2"):
        move_vertices(*arguments, torch.tensor([0, 2]), torch.tensor([0, 2]), 1)
    with pytest.raises(RuntimeError, match="'cluster' to leave none empty"):
        move_vertices(*arguments, torch.tensor([0, 2]), torch.tensor([1, 1]), 1)
