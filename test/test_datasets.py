import pytest
import torch
from torch_geometric.utils import degree

from torch_gic.datasets import NUM_LEAVES, NeighborhoodVariation


@pytest.fixture(scope="module")
def dataset():
    return NeighborhoodVariation(400)


def leaves_of(graph):
    num_centres = graph.num_nodes // (1 + NUM_LEAVES)
    return graph.x[num_centres:].view(num_centres, NUM_LEAVES)


def test_is_a_pyg_dataset(dataset):
    assert str(dataset) == "NeighborhoodVariation(400)"
    assert dataset.num_classes == 2
    assert dataset.num_features == 1
    assert torch.bincount(dataset.y).tolist() == [200, 200]
    assert dataset[0].is_undirected()
    again, other = NeighborhoodVariation(400), NeighborhoodVariation(400, seed=1)
    assert torch.equal(again.x, dataset.x)
    assert not torch.equal(other.x, dataset.x)
    with pytest.raises(ValueError, match="'num_graphs' to be at least 2"):
        NeighborhoodVariation(1)


def test_nothing_of_first_order_differs_between_the_classes(dataset):
    sizes, values, sums, degrees = ([[], []] for _ in range(4))
    for graph in dataset:
        label, leaves = int(graph.y), leaves_of(graph)
        assert leaves.sum(dim=1).abs().max() < 1e-5  # what a centre gets from its leaves: nothing, in both classes
        sizes[label].append(graph.num_nodes)
        values[label].append(leaves.abs().sort().values.flatten())
        sums[label].append(graph.x.sum())
        degrees[label].append(degree(graph.edge_index[1]).sort().values[-1])
    for statistics in (sizes, sums, degrees):
        a, b = (torch.tensor(part).float() for part in statistics)
        error = (a.var() / len(a) + b.var() / len(b)).sqrt()
        assert (a.mean() - b.mean()).abs() <= 4 * error
    quantile = torch.linspace(0.05, 0.95, 19)
    a, b = (torch.cat(part).quantile(quantile) for part in values)
    torch.testing.assert_close(a, b, atol=0.05, rtol=0)


def test_the_variation_does_differ(dataset):
    energy = [[], []]
    for graph in dataset:
        energy[int(graph.y)].append(leaves_of(graph).square().mean(dim=1).std())
    assert max(energy[0]) < min(energy[1])  # a threshold on it separates the classes without an error
