"""One run on graphs: a network is trained on a split, and tested once at the epoch that validation chose."""

import argparse
import functools

import torch

from ..common.training import Recipe, loss_of, score_of, train
from .data import load_graphs
from .folds import fold_split, printed_split, tuning_split
from .networks import NETWORKS, PRINTED, Shape, field_settings

BATCH, PRINTED_BATCH, EVALUATION_BATCH = 32, 100, 256


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
        return graphs.split
    if job["stage"] == "trial":
        return tuning_split(graphs.y)
    return (fold_split if job["stage"] == "test" else printed_split)(graphs.y, job["fold"])


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
    shuffle, metric = torch.Generator().manual_seed(job["fold"]), graphs.metric
    size = PRINTED_BATCH if job["stage"] == "sgd" else BATCH

    def batches():
        order = split.training[torch.randperm(split.training.numel(), generator=shuffle)]
        return (graphs.batch(part) for part in order.split(size))

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
