"""Classifying nodes by a U-Net on coarsened graphs, and by the same layers on the graph itself."""

import time

import torch
import torch.nn.functional as F
from torch_geometric.nn import GCNConv, LayerNorm, Linear
from torch_geometric.utils import scatter

from ..common.training import loss_of, score_of
from ..nodes.runs import load
from ..pooling.select import POOLERS
from .timed import train_for

DATASETS = dict.fromkeys(("Minesweeper", "PubMed", "Tolokers"), 30)  # name: seconds
NETWORKS = {"without": None, "U-Net, VIGMMPool": "frozen", "U-Net, random clusters": "random"}  # name: pooling
WIDTH, DROPOUT, RATIO = 64, 0.5, 0.25
LEVELS = [0, 1, 2, 1, 0]  # of the layers of a U-Net; without coarsening all are 0


class UNet(torch.nn.Module):
    """An encoder, a GCN layer on each level on the way down and up again, added to what came in on that level, and a linear
    layer. Without clusters, all levels are the graph itself."""

    def __init__(self, in_channels, out_channels, edges, clusters):
        super().__init__()
        self.edges, self.clusters = edges, clusters
        self.first, self.last = Linear(in_channels, WIDTH), Linear(WIDTH, out_channels)
        self.convs = torch.nn.ModuleList(GCNConv(WIDTH, WIDTH) for _ in LEVELS)
        self.norms = torch.nn.ModuleList(LayerNorm(WIDTH, mode="node") for _ in LEVELS)

    def forward(self, x):
        x = F.dropout((x @ self.first.weight.t() + self.first.bias).relu(), DROPOUT, self.training)
        kept, before = {}, 0
        for level, conv, norm in zip(LEVELS, self.convs, self.norms, strict=True):
            if self.clusters and level > before:
                kept[before], x = x, scatter(x, self.clusters[before], reduce="mean")
            elif self.clusters and level < before:
                x = x[self.clusters[level]] + kept[level]
            x = F.dropout(x + norm(conv(x, *self.edges[level if self.clusters else 0])).relu(), DROPOUT, self.training)
            before = level
        return self.last(x)


def coarsened(pooling, edge_index, num_nodes):
    """The edges and weights of each level, and the cluster of each of its nodes."""
    edges, clusters = [(edge_index, None)], []
    for _ in range(max(LEVELS) if pooling else 0):
        x = torch.ones(num_nodes, 1)
        batch = torch.zeros(num_nodes, dtype=torch.long)
        _, *edge, _, select = POOLERS[pooling](None, RATIO, num_nodes)(x, *edges[-1], batch)
        edges.append(tuple(edge))
        clusters.append(select.cluster_index)
        num_nodes = select.num_clusters
    return edges, clusters


def run(source, job):
    data = load(source.root, source.data_url, job["dataset"])
    training, validation, test = data.splits[job["run"]]
    torch.manual_seed(job["run"])
    start = time.process_time()
    levels = coarsened(NETWORKS[job["network"]], training.edge_index, training.y.numel())
    ahead = time.process_time() - start
    model = UNet(data.num_features, data.num_classes, *levels)

    def judge(part=validation):
        return score_of(model(part.x)[part.nodes], part.y[part.nodes], data.metric)

    def loss(part):
        return loss_of(model(part.x)[part.nodes], part.y[part.nodes], data.metric)

    result = train_for(job["seconds"], model, lambda: [training], loss, judge, ahead)
    with torch.no_grad():
        return result | {"metric": data.metric, "test": judge(test)}
