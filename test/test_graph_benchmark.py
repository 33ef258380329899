"""The benchmark of graphs: data, splits, networks and statistics."""

import argparse

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from benchmark.common.statistics import compare, holm
from benchmark.common.training import DEFAULT, best, candidates, score_of
from benchmark.graphs.data import DEGREE_CLASSES, Graphs, degree_classes, load_graphs, scaffold_split
from benchmark.graphs.networks import NETWORKS, Shape, field_settings
from benchmark.graphs.runs import FOLDS, TUNING, deal, fold_split, printed_split, tuning_split
from benchmark.paper.tables import PRINTED
from torch_gic import receptive_fields


def test_corrected_t_test():
    base = {0: 50.0, 1: 60.0, 2: 70.0}
    found = compare({0: 51.0, 1: 62.0, 2: 73.0, 3: 0.0}, base, share=1 / 9)
    assert (found.difference, found.folds) == (2.0, 3)
    assert found.p == pytest.approx(0.0955, abs=1e-4)  # t = 2 / sqrt(1/3 + 1/9) = 3 with two degrees of freedom
    reach = 4.302653 * (1 / 3 + 1 / 9) ** 0.5
    assert (found.low, found.high) == pytest.approx((2 - reach, 2 + reach), abs=1e-5)
    assert compare(base, base, 0.1).p is None
    assert compare({3: 1.0}, base, 0.1) is None


def test_holm():
    found = {name: compare({0: 1.0, 1: 2.0 + name, 2: 3.0}, {0: 0.0, 1: 0.0, 2: 0.0}, 0) for name in range(2)}
    raw = [found[name].p for name in range(2)]
    corrected = [holm({**found, "none": None})[name].p for name in range(2)]
    small = raw.index(min(raw))
    assert corrected[small] == pytest.approx(2 * raw[small])
    assert corrected[1 - small] == pytest.approx(max(raw[1 - small], 2 * raw[small]))
    assert holm({"none": None}) == {"none": None}


def test_scores():
    y, out = torch.tensor([0, 0, 1, 1]), torch.tensor([[0.0, 1.0], [0.0, 2.0], [0.0, 2.0], [0.0, 3.0]])
    assert score_of(out, y, "accuracy") == 0.5
    assert score_of(out, y, "ROC AUC") == 0.875
    with pytest.raises(ValueError, match="two classes"):
        score_of(out, torch.ones(4), "ROC AUC")
    with pytest.raises(ValueError, match="finite outputs"):
        score_of(out * torch.nan, y, "accuracy")
    assert score_of(torch.tensor([[1.0], [3.0]]), torch.tensor([1.0, 1.0]), "RMSE") == pytest.approx(-(2**0.5))


def test_trials():
    assert candidates(1) == [DEFAULT]
    several = candidates(5)
    assert several[0] == DEFAULT
    assert several == candidates(5)  # the same for every network
    assert len({str(settings) for settings in several}) == 5
    assert best(several[:3], [{"validation": 0.5}, {"validation": 0.7}, None]) == several[1]
    assert best(several[:2], [{"validation": 0.5}, {"validation": 0.5}]) == several[0]
    assert best(several[:1], [None]) is None


@pytest.fixture
def source(rings):
    return argparse.Namespace(data_url=rings[1], root=rings[3])


def test_graphs_equal_those_of_pyg(source):
    graphs = load_graphs(source, "RINGS")
    graphs.scale(torch.arange(16))
    graphs.use_fields((2, False, None))
    whole, chosen = graphs.batch(torch.arange(16)), torch.tensor([5, 2, 9])
    part = graphs.batch(chosen)
    ptr, first = graphs.node_start, 0
    for number, graph in enumerate(chosen.tolist()):
        size = int(ptr[graph + 1] - ptr[graph])
        rows = slice(first, first + size)
        assert torch.equal(part.x[rows], whole.x[ptr[graph] : ptr[graph + 1]])
        assert (part.batch[rows] == number).all()
        for mine, theirs in ((part.edge_index, whole.edge_index), (part.fields.index, whole.fields.index)):
            inside = (theirs[0] >= ptr[graph]) & (theirs[0] < ptr[graph + 1])
            assert torch.equal(mine[:, (mine[0] >= first) & (mine[0] < first + size)] - first, theirs[:, inside] - ptr[graph])
        first += size
    assert part.fields.weight.size(0) == part.fields.index.size(1) == int(part.fields.rowptr[-1])
    same = receptive_fields(part.edge_index, num_nodes=part.x.size(0), num_scales=2)
    torch.testing.assert_close(part.fields.weight, same.weight)
    assert torch.equal(part.fields.rowptr, same.rowptr)
    torch.testing.assert_close(part.pseudo, torch.full((part.edge_index.size(1), 2), 0.5**0.5))  # of degrees, all two


def test_features(source):
    """Measured ones come after label and degree, with zero mean and unit variance on the training graphs."""
    training = torch.tensor([1, 2, 5])
    few, many = (load_graphs(source, "RINGS", features) for features in ("labels", "all"))
    few.scale(training)
    many.scale(training)
    assert (few.num_features, many.num_features) == (few.x.size(1), many.x.size(1)) == (3, 5)
    torch.testing.assert_close(many.x[:, :3], few.x)
    i = torch.arange(80.0)
    measured = torch.stack([i % 5 + 0.5, -3 * i], dim=1)
    known = measured[torch.isin(many.graph, training)]
    torch.testing.assert_close(many.x[:, 3:], (measured - known.mean(dim=0)) / known.std(dim=0))


def test_positions_and_targets():
    """Pseudo-coordinates are differences of positions; a regression predicts what is scaled by the training graphs."""
    edges = torch.tensor([[0, 1], [1, 0]])
    graphs, nothing = [Data(edge_index=edges, num_nodes=2)] * 3, torch.empty(6, 0)
    position = torch.tensor([[0.0, 0.0], [1.0, 2.0]]).repeat(3, 1)
    made = Graphs(graphs, nothing, position, torch.tensor([1.0, 3.0, 100.0]), 1, "RMSE", positions=2)
    made.scale(torch.tensor([0, 1]))
    deviation = position[:4].std()
    torch.testing.assert_close(made.batch(torch.tensor([2])).pseudo, torch.tensor([[-1.0, -2.0], [1.0, 2.0]]) / deviation)
    torch.testing.assert_close(made.batch(torch.tensor([0, 1])).y, torch.tensor([-1.0, 1.0]) / 2**0.5)


def test_degree_classes():
    """Equally frequent where degrees differ, few where they do not, and the same for training and other graphs."""
    known = torch.arange(64.0)
    assert degree_classes(known, known).sum(dim=0).tolist() == [2.0] * DEGREE_CLASSES
    classes = degree_classes(torch.tensor([1.0, 2.0, 3.0, 500.0]), torch.tensor([2.0, 2.0, 2.0, 3.0]))
    assert classes.shape == (4, DEGREE_CLASSES)
    assert (classes.sum(dim=1) == 1).all()
    assert (classes.argmax(dim=1).diff() >= 0).all()


def test_folds():
    y = torch.arange(40) % 2
    tested = []
    for number in range(FOLDS):
        split = fold_split(y, number)
        assert sorted(torch.cat(split).tolist()) == list(range(40))
        assert y[split.test].bincount().tolist() == [2, 2]
        assert split.share == split.test.numel() / split.training.numel()
        tested += split.test.tolist()
        both = printed_split(y, number)
        assert torch.equal(both.test, split.test)
        assert both.training.numel() == 36
    assert sorted(tested) == list(range(40))
    assert torch.equal(tuning_split(y).validation, fold_split(y, TUNING).test)  # judges trials, and is never tested
    assert sorted(torch.cat(tuning_split(y)).tolist()) == list(range(40))
    assert (deal(y, 10, seed=1) != deal(y, 10, seed=2)).any()
    assert np.bincount(deal(np.arange(30) % 10, 10, seed=0)).tolist() == [3] * 10  # classes of three


def test_scaffold_split():
    """Molecules of one scaffold stay together, and the largest groups are trained on."""
    pytest.importorskip("rdkit")
    smiles = [*["C" * (n + 1) + "c1ccccc1" for n in range(8)], "c1ccncc1", "C1CC1"]  # benzene eight times, two others
    training, validation, test = scaffold_split(smiles)
    assert training == list(range(8))
    assert sorted(validation + test) == [8, 9]


NEEDS = {"graclus": "torch_cluster", "metis": "pymetis"}
NEEDS |= dict.fromkeys(("mincut", "dmon", "diffpool", "justbalance", "ndp", "kmis", "topk"), "tgp.poolers")


@pytest.mark.parametrize("name", [*NETWORKS, *(f"printed {name}" for name in PRINTED)])
def test_networks_train(name, source):
    pooling = name.removeprefix("GIN, ")
    if pooling in NEEDS:
        pytest.importorskip(NEEDS[pooling], exc_type=ImportError)
    graphs, everything = load_graphs(source, "RINGS"), torch.arange(16)
    graphs.scale(everything)
    make = PRINTED[name.removeprefix("printed ")] if name.startswith("printed ") else NETWORKS[name]
    model = make(graphs, everything, Shape(width=8, layers=2))
    graphs.use_fields(field_settings(model))
    out = model(graphs.batch(everything))
    assert out.shape == (16, graphs.num_outputs)
    out.logsumexp(dim=1).sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)
