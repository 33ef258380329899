"""The kernels that merge and move against their references, in Triton's interpreter: the same clusters."""

import sys
from pathlib import Path

import pytest
import torch
from conftest import ODD_GRAPHS, odd_graph
from torch_geometric.utils import cumsum

from torch_gic.coarsening import merge_clusters, move_nodes, undirected_graph

pytest.importorskip("triton")
sys.path.append(str(Path(__file__).parents[1] / "coarsening"))
from clusters import batch_of_graphs, settings, start, weighted

from torch_gic.kernels.triton import graph_blocks
from torch_gic.kernels.triton.merge_clusters import merge_clusters as merge
from torch_gic.kernels.triton.move_nodes import move_nodes as move


def both_equal(graph, batch, counts, num_iterations=20, most_together=64):
    """Merging, then moving what merging gave; and moving from a start at random, which has more to do."""
    arguments, offset = settings(graph, batch), cumsum(counts)
    merged = merge(*arguments, offset)
    assert torch.equal(merged, merge_clusters(*arguments, offset))
    for cluster in (merged, start(batch, counts)):
        expected = move_nodes(*arguments, offset, cluster, num_iterations, most_together)
        assert torch.equal(move(*arguments, offset, cluster, num_iterations, most_together), expected)
    return not torch.equal(expected, cluster)


@pytest.mark.parametrize("unit", [True, False])  # many ties, and none
@pytest.mark.parametrize("ratio", [0.1, 0.3, 0.8])
def test_kernels_equal_the_references(ratio, unit):
    graph, batch, counts = batch_of_graphs((9, 1, 21, 0, 5), unit=unit)
    counts = (ratio * torch.bincount(batch, minlength=counts.numel())).ceil().long()
    assert both_equal(graph, batch, counts)


@pytest.mark.parametrize("name", sorted(ODD_GRAPHS.keys() - {"empty"}))
def test_odd_graphs(name):
    data = odd_graph(name)
    batch = torch.zeros(data.num_nodes, dtype=torch.long)
    graph = undirected_graph(data.edge_index, data.edge_weight, batch, 1)
    both_equal(graph, batch, torch.tensor([(data.num_nodes + 1) // 2]), num_iterations=3)
    both_equal(graph, batch, torch.tensor([1]), num_iterations=1)


def test_one_large_graph_among_small_ones():
    """Several blocks of pairs, and fewer lanes used than there are in the small ones."""
    assert both_equal(*batch_of_graphs((3, 40, 1, 2)), num_iterations=2)


def test_graphs_without_a_program(monkeypatch):
    monkeypatch.setattr(graph_blocks, "MOST_NODES", 10)  # two graphs above, two below
    assert both_equal(*batch_of_graphs((12, 4, 0, 30, 7), unit=True))


def test_links_that_underflow_are_links():
    graph = weighted([(0, 1), (1, 2), (2, 3)], 4, [1.0, 5e-324, 1.0])
    assert bool((graph.weight == 0).any())
    both_equal(graph, torch.zeros(4, dtype=torch.long), torch.tensor([1]))


def test_more_go_together_than_may():
    assert both_equal(*batch_of_graphs((20, 6))[:2], torch.tensor([2, 1]), num_iterations=4, most_together=2)


@pytest.mark.parametrize("num_iterations", [0, 1])
def test_iterations(num_iterations):
    both_equal(*batch_of_graphs((8, 5)), num_iterations=num_iterations)


def test_non_contiguous():
    graph, batch, counts = batch_of_graphs((9, 4))
    _, *inputs = *settings(graph, batch), cumsum(counts)
    strided = [torch.stack([value, value], dim=1)[:, 0] for value in inputs]
    cluster = merge(graph, *strided)
    assert torch.equal(cluster, merge(graph, *inputs))
    twice = torch.stack([cluster, cluster], dim=1)[:, 0]
    assert torch.equal(move(graph, *strided, twice, 2), move(graph, *inputs, cluster, 2))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("col", torch.tensor([2, 0]), "edge to stay inside a graph"),
        ("weight", torch.tensor([1.0, torch.nan, 1.0], dtype=torch.float64), "'node_weight' to be positive and finite"),
        ("cluster", torch.tensor([0, 1, 1]), "'cluster' to lie in the clusters of its graph"),
    ],
)
def test_bad_operands(name, value, message):
    graph, weight, rank, _ = settings(weighted([(0, 1)], 3), torch.tensor([0, 0, 1]))
    graph = graph._replace(col=value) if name == "col" else graph
    weight, cluster = value if name == "weight" else weight, value if name == "cluster" else torch.tensor([0, 0, 1])
    arguments = graph, weight, rank, torch.tensor([0, 2, 3]), torch.tensor([0, 1, 2])
    with pytest.raises(RuntimeError, match=message):
        move(*arguments, cluster, 1)
    if name != "cluster":
        with pytest.raises(RuntimeError, match=message):
            merge(*arguments)
