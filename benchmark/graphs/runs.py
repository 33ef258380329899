"""One run on graphs: a network is trained on a split, and tested once at the epoch that validation chose."""

import argparse
import functools
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..common.training import Recipe, loss_of, score_of, train
from ..paper.tables import PRINTED
from .data import load_graphs
from .networks import NETWORKS, Shape, field_settings

BATCH, PRINTED_BATCH, EVALUATION_BATCH = 32, 100, 256
FOLDS = 10
TUNING = 9  # the fold whose graphs judge the trials, and which is never tested


class Split(NamedTuple):
    training: Tensor
    validation: Tensor
    test: Tensor

    @property
    def share(self):
        """Test graphs over training graphs, for the corrected t-test."""
        return self.test.numel() / self.training.numel()


def fold_split(y, number):
    """One of ten stratified folds is tested; a tenth of the other graphs, stratified too, is for validation."""
    fold = deal(y, FOLDS, seed=0)
    rest = np.flatnonzero(fold != number)
    validation = deal(y[rest], FOLDS, seed=1 + number) == 0
    return Split(*map(torch.from_numpy, (rest[~validation], rest[validation], np.flatnonzero(fold == number))))


def tuning_split(y):
    """For trials: validated by the graphs of a fold that is never tested, trained on all others."""
    fold = deal(y, FOLDS, seed=0)
    training, validation = (torch.from_numpy(np.flatnonzero(part)) for part in (fold != TUNING, fold == TUNING))
    return Split(training, validation, validation[:0])


def printed_split(y, number):
    """Ten folds without validation graphs, as in the paper: the test graphs choose the epoch too."""
    split = fold_split(y, number)
    return Split(torch.cat([split.training, split.validation]).sort().values, split.test, split.test)


def deal(y, num_folds, seed):
    """The fold of each graph: every class, and all of them together, spread evenly. (scikit-learn's StratifiedKFold refuses
    classes smaller than the number of folds, and all thirty of Cuneiform are.)"""
    y, generator = np.asarray(y), np.random.default_rng(seed)
    order = np.concatenate([generator.permutation(np.flatnonzero(y == label)) for label in np.unique(y)])
    fold = np.empty(len(y), dtype=int)
    fold[order] = np.arange(len(y)) % num_folds
    return fold


@functools.lru_cache(maxsize=1)
def load(root, data_url, name, features):
    """Kept in each process: reading a data set takes longer than an epoch."""
    return load_graphs(argparse.Namespace(root=root, data_url=data_url), name, features)


def make_job(dataset, network, stage, settings, epochs, fold, features="all", encoder=True):
    """All that a run depends on. The stage: "trial" is validated only, "test" is tested once; "printed" has the paper's layers
    and is tested after every epoch, "sgd" so too with the paper's optimiser."""
    job = {"dataset": dataset, "network": network, "stage": stage, "features": features, "epochs": epochs, "fold": fold}
    return job | settings | ({"encoder": encoder} if stage in ("trial", "test") else {})


def split_of(graphs, job):
    """Where a data set has a split, folds are seeds."""
    if graphs.split is not None:
        return Split(*graphs.split)
    if job["stage"] == "trial":
        return tuning_split(graphs.y)
    return (fold_split if job["stage"] == "test" else printed_split)(graphs.y, job["fold"])


def shuffled(graphs, chosen, size, seed):
    """A function that gives the batches of an epoch, in another order each time."""
    generator = torch.Generator().manual_seed(seed)

    def batches():
        order = chosen[torch.randperm(chosen.numel(), generator=generator)]
        return (graphs.batch(part) for part in order.split(size))

    return batches


def run(source, job):
    """Trains and tests one network."""
    graphs = load(source.root, source.data_url, job["dataset"], job["features"])
    split, printed = split_of(graphs, job), job["stage"] in ("printed", "sgd")
    graphs.scale(split.training)
    torch.manual_seed(job["fold"])
    shape = Shape(*(job[name] for name in Shape._fields)) if not printed else None
    model = (PRINTED if printed else NETWORKS)[job["network"]](graphs, split.training, shape)
    graphs.use_fields(field_settings(model))
    judged = graphs.batches(split.validation, EVALUATION_BATCH)
    batches = shuffled(graphs, split.training, PRINTED_BATCH if job["stage"] == "sgd" else BATCH, job["fold"])
    metric = graphs.metric

    def loss(data):
        return loss_of(model(data), data.y, metric), data.size

    def judge(parts=judged):
        out, y = torch.cat([model(data) for data in parts]), torch.cat([data.y for data in parts])
        return score_of(out, y, metric) * graphs.target_scale, float(loss_of(out, y, metric))

    recipe = Recipe(job["epochs"], job.get("lr", 1e-3), printed=job["stage"] == "sgd")
    result = train(model, batches, loss, judge, recipe) | {"metric": metric}
    if job["stage"] != "test":
        return result
    with torch.no_grad():
        test = judge(graphs.batches(split.test, EVALUATION_BATCH))[0]
    return result | {"test": test, "share": split.share}
