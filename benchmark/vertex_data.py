"""The graphs of the benchmark of nodes, and which nodes to train on, to choose by and to test with."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.datasets import HeterophilousGraphDataset, Planetoid, Twitch
from torch_geometric.utils import remove_self_loops

RUNS = 10  # seeds, or published splits
SPARSE = 0.02  # the share of numbers below which a sparse product is the faster one; PubMed has 0.1, the others less than this
COUNTRIES = {"training": ("DE", "EN", "FR"), "validation": ("ES",), "test": ("PT", "RU")}  # of Twitch


class Part(NamedTuple):
    """A graph, and those of its nodes that count."""

    x: Tensor  # sparse where nearly all of it is zero
    edge_index: Tensor
    y: Tensor
    vertices: Tensor


class VertexSplit(NamedTuple):
    training: Part
    validation: Part  # of the same graph, or of another one
    test: Part


class VertexData(NamedTuple):
    splits: list  # of ten runs; all the same where the data has one split
    num_features: int
    num_classes: int


def planetoid(root, url, name):
    """One published split, ten seeds."""
    Planetoid.url = f"{url}/planetoid" if url else Planetoid.url
    data = _tidy(Planetoid(root, name)[0])
    parts = [_part(data, mask) for mask in (data.train_mask, data.val_mask, data.test_mask)]
    return [VertexSplit(*parts)] * RUNS


def tolokers(root, url, name):
    """Ten published splits. Two of the features are counts and far from unit variance, so all are brought to it."""
    HeterophilousGraphDataset.url = f"{url}/heterophilous" if url else HeterophilousGraphDataset.url
    data = _tidy(HeterophilousGraphDataset(root, name)[0])
    data.x = (data.x - data.x.mean(dim=0)) / data.x.std(dim=0).clamp(min=1e-6)  # of all nodes: labels are not looked at
    masks = (data.train_mask, data.val_mask, data.test_mask)
    return [VertexSplit(*(_part(data, mask[:, number]) for mask in masks)) for number in range(RUNS)]


def twitch(root, url, name):
    """Trained on some countries, chosen on another, tested on two that were never seen; ten seeds."""
    Twitch.url = f"{url}/twitch" if url else Twitch.url
    parts = []
    for countries in COUNTRIES.values():
        data = _tidy(Batch.from_data_list([Twitch(root, country)[0] for country in countries]))
        parts.append(_part(data, torch.ones(data.num_nodes, dtype=torch.bool)))
    return [VertexSplit(*parts)] * RUNS


def _tidy(data):
    """Without loops, which convolutions add as they want; features that are nearly all zero as a sparse matrix."""
    data.edge_index, _ = remove_self_loops(data.edge_index)
    data.x = data.x.to_sparse().coalesce() if (data.x != 0).float().mean() < SPARSE else data.x
    return data


def _part(data, mask):
    return Part(data.x, data.edge_index, data.y, mask.nonzero().flatten())


SOURCES = {"Cora": planetoid, "CiteSeer": planetoid, "PubMed": planetoid, "Tolokers": tolokers, "Twitch": twitch}


def load_vertices(source, name):
    """A data set by its name, kept in a folder of `source.root`, from `source.data_url` or from where PyG finds it."""
    url = source.data_url.rstrip("/") if source.data_url else None
    try:
        splits = SOURCES[name](source.root, url, name)
    except Exception as error:  # PyG and the file systems behind it raise what they like
        raise SystemExit(
            f"Could not get {name}: {error}\nCheck the network, or give the folder that holds planetoid, heterophilous and"
            " twitch: --data-url file:///path/to/folder"
        ) from error
    training = splits[0].training
    return VertexData(splits, training.x.size(1), int(training.y.max()) + 1)
