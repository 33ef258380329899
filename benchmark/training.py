"""Training for the benchmarks of accuracy: data, splits, and one loop that chooses its epoch by validation graphs alone."""

import itertools
import json
import time
import zipfile
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.utils import cumsum, degree

from .data import load_dataset

FOLDS = 10
BATCH_SIZE = 32
LEARNING_RATE = 1e-3
LAST = 10  # epochs whose mean validation accuracy is kept beside the best one, since the best of many is noisy


class GraphBatch(NamedTuple):
    x: Tensor
    edge_index: Tensor
    batch: Tensor
    y: Tensor


class Graphs:
    """All graphs of a data set in a few long tensors: batches are cut out of them, many times as fast as by a DataLoader.

    Attributes are the one-hot label and the degree, or the degree alone where there are no labels.
    """

    def __init__(self, dataset):
        data = Batch.from_data_list(list(dataset))
        self.num_classes = dataset.num_classes
        self.y = data.y
        self.node_start = data.ptr
        self.edge_start = cumsum(torch.bincount(data.batch[data.edge_index[0]], minlength=len(dataset)))
        self.edge_index = data.edge_index
        self.graph = data.batch
        self.labels = data.x if dataset.num_node_labels > 0 else torch.empty(data.num_nodes, 0)
        self.degree = degree(data.edge_index[1], data.num_nodes)
        self.x = None

    def scale(self, training):
        """Makes the attributes: the degree gets zero mean and unit variance on these graphs, the ones to train on."""
        known = self.degree[torch.isin(self.graph, training)]
        scaled = (self.degree - known.mean()) / known.std().clamp(min=1e-6)
        self.x = torch.cat([self.labels, scaled.unsqueeze(1)], dim=1)

    def mean_size(self, graphs):
        return float(self.node_start.diff()[graphs].double().mean())

    def batch(self, graphs):
        size, num_edges = self.node_start.diff()[graphs], self.edge_start.diff()[graphs]
        shift = cumsum(size)[:-1] - self.node_start[graphs]
        edge_index = self.edge_index[:, _ranges(self.edge_start[graphs], num_edges)] + shift.repeat_interleave(num_edges)
        batch = torch.arange(graphs.numel()).repeat_interleave(size)
        return GraphBatch(self.x[_ranges(self.node_start[graphs], size)], edge_index, batch, self.y[graphs])

    def batches(self, graphs):
        return [self.batch(part) for part in graphs.split(BATCH_SIZE)]


def _ranges(start, length):
    """The numbers from each start on, as many as its length says, one range after the other."""
    return torch.arange(int(length.sum())) + (start - cumsum(length)[:-1]).repeat_interleave(length)


def load_graphs(args, name):
    return Graphs(load_dataset(args, name))


class Split(NamedTuple):
    training: Tensor
    validation: Tensor
    test: Tensor


def load_splits(path, name, y):
    """The ten splits of a data set: from the zip file of `"A Fair Comparison of Graph Neural Networks for Graph
    Classification" <https://arxiv.org/abs/1912.09893>`_, or stratified ones of our own where no file is given."""
    if path is None:
        return _own_splits(y.numpy())
    with zipfile.ZipFile(path) as file:
        # Social networks are there twice; the later name, COLLABORATIVE_DEGREE, is for networks that are shown the degree.
        known = sorted(file.namelist(), reverse=True)
        found = [n for n in known if n.split("/")[-1] in (f"{name}_splits.json", f"{name}_full_splits.json")]
        if not found:
            raise SystemExit(f"{path} has no splits of {name}, only {', '.join(known)}. Leave out --splits to make some.")
        folds = json.loads(file.read(found[0]))
    inner = [fold["model_selection"][0] for fold in folds]
    splits = [(part["train"], part["validation"], fold["test"]) for part, fold in zip(inner, folds, strict=True)]
    if any(sorted(itertools.chain(*split)) != list(range(len(y))) for split in splits):
        raise SystemExit(f"{found[0]} of {path} does not split the {len(y)} graphs of {name}")
    return [Split(*map(torch.tensor, split)) for split in splits]


def _own_splits(y):
    folds, splits = stratified_folds(y, FOLDS, seed=0), []
    for number in range(FOLDS):
        rest = np.flatnonzero(folds != number)
        validation = stratified_folds(y[rest], 10, seed=1 + number) == 0
        parts = rest[~validation], rest[validation], np.flatnonzero(folds == number)
        splits.append(Split(*map(torch.from_numpy, parts)))
    return splits


def stratified_folds(y, num_folds, seed):
    """The fold of each graph: every class, and all of them together, spread evenly over the folds."""
    generator = np.random.default_rng(seed)
    order = np.concatenate([generator.permutation(np.flatnonzero(y == label)) for label in np.unique(y)])
    fold = np.empty(len(y), dtype=int)
    fold[order] = np.arange(len(y)) % num_folds
    return fold


def train_fair(model, graphs, split, epochs, seed):
    """Trains a model and tests it once, with the weights of the epoch that validation graphs choose.

    That is the epoch with the highest validation accuracy, and among equals the one with the lowest cross entropy. The loss
    is the cross entropy plus `auxiliary_loss` of all modules that have one. Models that are trained with the same seed see
    the same batches, whatever random numbers they draw themselves.

    Args:
        model: Called as `model(x, edge_index, batch=..., batch_size=...)`, gives a row of logits a graph.
        graphs: The `Graphs`, scaled by the training part of the split.
        split: The `Split`.
        epochs: The number of epochs.
        seed: The seed of the order of the training graphs.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    with_loss = [module for module in model.modules() if hasattr(module, "auxiliary_loss")]
    shuffle = torch.Generator().manual_seed(seed)
    validation = graphs.batches(split.validation)
    start, accuracies, best = time.perf_counter(), [], None
    for epoch in range(1, epochs + 1):
        model.train()
        for part in split.training[torch.randperm(split.training.numel(), generator=shuffle)].split(BATCH_SIZE):
            data = graphs.batch(part)
            optimizer.zero_grad()
            loss = F.cross_entropy(_predict(model, data), data.y)
            (loss + sum(module.auxiliary_loss for module in with_loss)).backward()
            optimizer.step()
        scheduler.step()
        accuracy, loss = evaluate(model, validation)
        accuracies.append(accuracy)
        if best is None or (accuracy, -loss) > (best["validation"], -best["loss"]):
            state = {name: value.clone() for name, value in model.state_dict().items()}
            best = {"validation": accuracy, "loss": loss, "epoch": epoch, "state": state}
    seconds = time.perf_counter() - start
    model.load_state_dict(best["state"])
    return {
        "validation": best["validation"],
        "validation_last": sum(accuracies[-LAST:]) / len(accuracies[-LAST:]),
        "test": evaluate(model, graphs.batches(split.test))[0],
        "epoch": best["epoch"],
        "seconds": round(seconds, 2),
    }


@torch.no_grad()
def evaluate(model, batches):
    """The accuracy and the mean cross entropy."""
    model.eval()
    out, y = torch.cat([_predict(model, data) for data in batches]), torch.cat([data.y for data in batches])
    return float((out.argmax(dim=1) == y).double().mean()), float(F.cross_entropy(out, y))


def _predict(model, data):
    return model(data.x, data.edge_index, batch=data.batch, batch_size=data.y.numel())
