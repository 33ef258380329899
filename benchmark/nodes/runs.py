"""One run on nodes: a network is trained on a split, and judged once at the epoch that validation nodes choose."""

import argparse
import functools

import torch
from torch_geometric.utils import degree

from torch_gic import receptive_fields

from ..common.layers import About, pseudo_coordinates
from ..common.training import Recipe, loss_of, score_of, train
from .data import load_nodes
from .networks import NETWORKS, NodeNetwork

WEIGHT_DECAY = 0.1


@functools.lru_cache(maxsize=1)
def load(root, data_url, name):
    return load_nodes(argparse.Namespace(root=root, data_url=data_url), name)


@functools.lru_cache(maxsize=8)
def _edges(edge_index, num_nodes, with_fields):
    """What convolutions take beside features: pseudo-coordinates, or fields. Made once for each graph, which is kept."""
    pseudo = pseudo_coordinates(edge_index, num_nodes, None)
    return pseudo, {"fields": receptive_fields(edge_index, num_nodes=num_nodes)} if with_fields else {}


def make_job(dataset, network, settings, epochs, number):
    return {"dataset": dataset, "network": network, "epochs": epochs, "run": number} | settings


def run(source, job):
    """Trains one network, and tests it once with the weights of the epoch that validation nodes choose."""
    data = load(source.root, source.data_url, job["dataset"])
    split = data.splits[job["run"]]
    torch.manual_seed(job["run"])
    training = split.training
    about = About(torch.bincount(degree(training.edge_index[1], training.y.numel()).long()))
    shape = job["width"], data.num_classes, job["layers"], job["dropout"], about
    model = NodeNetwork(NETWORKS[job["network"]], data.num_features, *shape)

    def predict(part):
        pseudo, fields = _edges(part.edge_index, part.y.numel(), job["network"].startswith("GIC"))
        return model(part.x, part.edge_index, pseudo, **fields)[part.nodes], part.y[part.nodes]

    def loss(part):
        out, y = predict(part)
        return loss_of(out, y, data.metric), y.numel()

    def judge(part=split.validation):
        out, y = predict(part)
        return score_of(out, y, data.metric), float(loss_of(out, y, data.metric))

    recipe = Recipe(job["epochs"], job["lr"], WEIGHT_DECAY)
    result = train(model, lambda: [training], loss, judge, recipe)
    with torch.no_grad():
        return result | {"metric": data.metric, "test": judge(split.test)[0]}
