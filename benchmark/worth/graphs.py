"""Classifying graphs with and without coarsening between the layers."""

import torch

from ..common.training import loss_of, score_of
from ..graphs.folds import fold_split
from ..graphs.networks import NETWORKS as FACTORIES
from ..graphs.networks import Shape
from ..graphs.runs import BATCH, EVALUATION_BATCH, load
from .timed import train_for

DATASETS = dict.fromkeys(("DD", "REDDIT-BINARY", "PROTEINS_full", "COLLAB"), 30)  # name: seconds
NETWORKS = {"without": "GIN", "VIGMMPool": "GIN, VIGMMPool", "random clusters": "GIN, random"}


def run(source, job):
    graphs = load(source.root, source.data_url, job["dataset"], "all")
    split, metric = fold_split(graphs.y, job["run"]), graphs.metric
    graphs.scale(split.training)
    torch.manual_seed(job["run"])
    model = FACTORIES[NETWORKS[job["network"]]](graphs, split.training, Shape())
    shuffle = torch.Generator().manual_seed(job["run"])

    def batches():
        order = split.training[torch.randperm(split.training.numel(), generator=shuffle)]
        return (graphs.batch(part) for part in order.split(BATCH))

    def judge(part=split.validation):
        batches = graphs.batches(part, EVALUATION_BATCH)
        return score_of(torch.cat([model(data) for data in batches]), torch.cat([data.y for data in batches]), metric)

    result = train_for(job["seconds"], model, batches, lambda data: loss_of(model(data), data.y, metric), judge)
    with torch.no_grad():
        return result | {"metric": metric, "test": judge(split.test)}
