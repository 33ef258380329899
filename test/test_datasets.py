import pytest
import torch

from torch_gic.datasets import LETTERS, Letters


@pytest.fixture(scope="module")
def dataset():
    return Letters(280)


def test_is_a_pyg_dataset(dataset):
    assert str(dataset) == "Letters(280)"
    assert dataset.num_classes == len(LETTERS) == 14
    assert dataset.num_features == 2
    assert torch.bincount(dataset.y).tolist() == [20] * 14
    assert all(graph.is_undirected() and not graph.has_self_loops() for graph in dataset)
    again, other = Letters(280), Letters(280, seed=1)
    assert torch.equal(again.x, dataset.x)
    assert not torch.equal(other.x, dataset.x)


@pytest.mark.parametrize(("argument", "value"), [("num_graphs", 0), ("noise", -1.0), ("faults", 1.5)])
def test_bad_input(argument, value):
    with pytest.raises(ValueError, match=f"'{argument}' to be"):
        Letters(**{argument: value})


def test_drawings_without_distortion_are_the_letters():
    for graph, (points, strokes) in zip(Letters(14, noise=0, faults=0), LETTERS.values(), strict=True):
        assert graph.x.tolist() == torch.tensor(points, dtype=torch.float).tolist()
        drawn = {tuple(sorted(edge)) for edge in graph.edge_index.t().tolist()}
        assert drawn == {tuple(sorted(stroke)) for stroke in strokes}
    shapes = [(points, strokes) for points, strokes in LETTERS.values()]
    assert all(shapes.count(shape) == 1 for shape in shapes)


def test_distortion(dataset):
    """Points move by the noise, and some strokes are lost or wrong."""
    exact = Letters(280, noise=0, faults=0)
    moved = dataset.x - exact.x
    assert abs(float(moved.std()) - 0.35) < 0.03
    assert abs(float(moved.mean())) < 0.05
    changes = [a.num_edges - b.num_edges for a, b in zip(dataset, exact, strict=True)]
    assert {-2, 0} <= set(changes) <= {-2, 0, 2}
