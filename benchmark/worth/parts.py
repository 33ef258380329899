"""The parts of the benchmark of coarsening: graphs, nodes, and mini-batches of a large graph, with data sets and networks."""

import functools
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.loader import ClusterLoader, NeighborLoader
from torch_geometric.nn import GCNConv, GraphSAGE, LayerNorm, Linear
from torch_geometric.utils import scatter

from torch_gic.loader import ClusterData

from ..common.data import planted_graph
from ..common.training import loss_of, score_of, train_for
from ..graphs.networks import NETWORKS, Shape
from ..graphs.runs import BATCH, EVALUATION_BATCH, fold_split, shuffled
from ..graphs.runs import load as load_graphs
from ..nodes.runs import load as load_nodes
from ..pooling.select import POOLERS

WIDTH, DROPOUT = 64, 0.5
RATIO = 0.25  # of a U-Net
LEVELS = [0, 1, 2, 1, 0]  # of the layers of a U-Net; without coarsening all are 0
NEIGHBORS, SEEDS = [25, 10], 512
PART_SIZE, PARTS_OF_A_BATCH = 500, 10  # nodes of a part; parts
JUDGED = 2048  # nodes at most that validate, and that test: always with the same sampled neighbours


class Part(NamedTuple):
    """What is compared."""

    datasets: dict  # name: seconds
    networks: dict  # name: what makes the difference
    run: Callable  # of the source of data, the job, and what makes the difference


def run_graphs(source, job, network):
    graphs = load_graphs(source.root, source.data_url, job["dataset"], "all")
    split, metric = fold_split(graphs.y, job["run"]), graphs.metric
    graphs.scale(split.training)
    torch.manual_seed(job["run"])
    model = NETWORKS[network](graphs, split.training, Shape())
    batches = shuffled(graphs, split.training, BATCH, job["run"])

    def judge(part=split.validation):
        batches = graphs.batches(part, EVALUATION_BATCH)
        return score_of(torch.cat([model(data) for data in batches]), torch.cat([data.y for data in batches]), metric)

    result = train_for(job["seconds"], model, batches, lambda data: loss_of(model(data), data.y, metric), judge)
    with torch.no_grad():
        return result | {"metric": metric, "test": judge(split.test)}


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


def run_nodes(source, job, pooling):
    data = load_nodes(source.root, source.data_url, job["dataset"])
    training, validation, test = data.splits[job["run"]]
    torch.manual_seed(job["run"])
    start = time.process_time()
    levels = coarsened(pooling, training.edge_index, training.y.numel())
    ahead = time.process_time() - start
    model = UNet(data.num_features, data.num_classes, *levels)

    def judge(part=validation):
        return score_of(model(part.x)[part.nodes], part.y[part.nodes], data.metric)

    def loss(part):
        return loss_of(model(part.x)[part.nodes], part.y[part.nodes], data.metric)

    result = train_for(job["seconds"], model, lambda: [training], loss, judge, ahead)
    with torch.no_grad():
        return result | {"metric": data.metric, "test": judge(test)}


@functools.lru_cache(maxsize=1)
def load_large(source, name):
    """A graph whose nodes are for training (0), validation (1) or test (2), by `part`. Of PubMed all train but those that the
    published split judges by: 60 nodes would be less than a batch."""
    if name == "planted":
        data, generator = planted_graph(), torch.Generator().manual_seed(1)
        data.part = torch.where(data.train_mask, 0, 1 + torch.randint(2, (data.num_nodes,), generator=generator))
        del data.train_mask
        return data
    training, *judged = load_nodes(*source, name).splits[0]
    part = torch.zeros_like(training.y)
    for number, chosen in enumerate(judged, start=1):
        part[chosen.nodes] = number
    x = training.x.to_dense() if training.x.is_sparse else training.x
    return Data(x=x, edge_index=training.edge_index, y=training.y, part=part)


def run_samples(source, job, clustered):
    data = load_large((source.root, source.data_url), job["dataset"])
    torch.manual_seed(job["run"])
    judged = [judged_batches(data, part) for part in (1, 2)]
    start = time.process_time()
    loader = (
        cluster_loader(data)
        if PARTS["samples"].networks[job["network"]]
        else neighbor_loader(data, (data.part == 0).nonzero().view(-1))
    )
    ahead = time.process_time() - start
    model = GraphSAGE(data.num_features, WIDTH, len(NEIGHBORS), int(data.y.max()) + 1, dropout=DROPOUT)

    def loss(batch):
        counts = batch.part == 0
        counts[getattr(batch, "batch_size", batch.num_nodes) :] = False  # of samples only the seeds, which come first
        return F.cross_entropy(model(batch.x, batch.edge_index)[counts], batch.y[counts])

    def judge(batches=judged[0]):
        right = [(model(b.x, b.edge_index).argmax(dim=1) == b.y)[: b.batch_size] for b in batches]
        return float(torch.cat(right).double().mean())

    def batches():
        return (batch for batch in loader if bool((batch.part == 0).any()))

    result = train_for(job["seconds"], model, batches, loss, judge, ahead)
    with torch.no_grad():
        return result | {"metric": "accuracy", "test": judge(judged[1])}


def cluster_loader(data):
    return ClusterLoader(ClusterData(data, max(1, data.num_nodes // PART_SIZE)), batch_size=PARTS_OF_A_BATCH, shuffle=True)


def neighbor_loader(data, seeds, shuffle=True):
    return NeighborLoader(data, NEIGHBORS, seeds, batch_size=SEEDS, shuffle=shuffle)


def judged_batches(data, part):
    nodes = (data.part == part).nonzero().view(-1)
    chosen = nodes[torch.randperm(nodes.numel(), generator=torch.Generator().manual_seed(part))[:JUDGED]]
    return list(neighbor_loader(data, chosen, shuffle=False))


PARTS = {
    "graphs": Part(
        dict.fromkeys(("DD", "REDDIT-BINARY", "PROTEINS_full", "COLLAB"), 30),
        {"without": "GIN", "VIGMMPool": "GIN, VIGMMPool", "random clusters": "GIN, random"},
        run_graphs,
    ),
    "nodes": Part(
        dict.fromkeys(("Minesweeper", "PubMed", "Tolokers"), 30),
        {"without": None, "U-Net, VIGMMPool": "frozen", "U-Net, random clusters": "random"},  # the pooling
        run_nodes,
    ),
    "samples": Part({"PubMed": 30, "planted": 240}, {"clusters": True, "sampled neighbours": False}, run_samples),
}


def run(source, job):
    """Trains one network for the seconds of the job, and tests it once."""
    part = PARTS[job["part"]]
    return part.run(source, job, part.networks[job["network"]])
