"""The graphs of the benchmark of nodes, and which nodes to train on, to choose by and to test with."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.transforms import RandomNodeSplit
from torch_geometric.utils import remove_self_loops, to_undirected

from ..common.data import loading

RUNS = 10  # published splits, random splits or seeds
SPARSE = 0.02  # the share of numbers below which a sparse product is the faster one
COUNTRIES = {"training": ("DE", "EN", "FR"), "validation": ("ES",), "test": ("PT", "RU")}  # of Twitch
PER_CLASS = 20  # nodes to train on where no split is published, and 30 to choose by (Shchur et al. 2018)


class Part(NamedTuple):
    """A graph, and those of its nodes that count."""

    x: Tensor  # sparse where nearly all of it is zero
    edge_index: Tensor
    y: Tensor
    nodes: Tensor


class NodeSplit(NamedTuple):
    training: Part
    validation: Part  # of the same graph, or of another one
    test: Part


class Source(NamedTuple):
    kind: str  # the class of PyG
    metric: str
    splits: str  # in words
    standardise: bool = False  # features that are not words are brought to zero mean and unit variance


ONE, PUBLISHED, RANDOM = "the published split, ten seeds", "ten published splits", "ten random splits"
DATASETS = {
    **dict.fromkeys(("Cora", "CiteSeer", "PubMed"), Source("Planetoid", "accuracy", ONE)),
    "Tolokers": Source("HeterophilousGraphDataset", "ROC AUC", PUBLISHED, True),
    "Minesweeper": Source("HeterophilousGraphDataset", "ROC AUC", PUBLISHED, True),
    "Twitch": Source("Twitch", "accuracy", "trained on three countries, tested on two, ten seeds"),
    "Photo": Source("Amazon", "accuracy", RANDOM),
    "CS": Source("Coauthor", "accuracy", RANDOM),
    "Actor": Source("Actor", "accuracy", PUBLISHED),
}


class NodeData(NamedTuple):
    splits: list  # of ten runs
    num_features: int
    num_classes: int
    metric: str


def load_nodes(args, name):
    """A data set by its name."""
    kind, metric, _, standardise = DATASETS[name]
    root = args.root / kind
    with loading(args, kind, name) as dataset:
        if kind == "Twitch":
            graphs = [
                _tidy(Batch.from_data_list([dataset(root, country)[0] for country in part])) for part in COUNTRIES.values()
            ]
            everything = [torch.ones(graph.num_nodes, dtype=torch.bool) for graph in graphs]
            splits = [NodeSplit(*map(_part, graphs, everything))] * RUNS
        else:
            data = dataset(root)[0] if kind == "Actor" else dataset(root, name)[0]
            data = _tidy(data, standardise)
            splits = [NodeSplit(*(_part(data, mask) for mask in masks)) for masks in _masks(data)]
    training = splits[0].training
    return NodeData(splits, training.x.size(1), int(training.y.max()) + 1, metric)


def _masks(data):
    """Those of training, validation and test for each run."""
    if "train_mask" not in data:
        made = []
        for seed in range(RUNS):
            torch.manual_seed(seed)
            classes = int(data.y.max()) + 1
            split = RandomNodeSplit("test_rest", num_train_per_class=PER_CLASS, num_val=30 * classes)(data.clone())
            made.append((split.train_mask, split.val_mask, split.test_mask))
        return made
    masks = data.train_mask, data.val_mask, data.test_mask
    if masks[0].dim() == 1:
        return [masks] * RUNS
    return [tuple(mask[:, number].bool() for mask in masks) for number in range(RUNS)]


def _tidy(data, standardise=False):
    """Undirected and without loops; features that are nearly all zero as a sparse matrix."""
    data.edge_index = to_undirected(remove_self_loops(data.edge_index)[0], num_nodes=data.num_nodes)
    if standardise:  # of all nodes: labels are not looked at
        data.x = (data.x - data.x.mean(dim=0)) / data.x.std(dim=0).clamp(min=1e-6)
    data.x = data.x.to_sparse().coalesce() if (data.x != 0).float().mean() < SPARSE else data.x
    return data


def _part(data, mask):
    return Part(data.x, data.edge_index, data.y, mask.nonzero().flatten())
