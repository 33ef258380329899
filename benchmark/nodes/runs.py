"""One run on nodes: data sets and their splits, the network around each convolution, and its training.

The network is trained on a split, and judged once at the epoch that validation nodes choose.
"""

import argparse
import functools
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.nn import LayerNorm, Linear
from torch_geometric.transforms import RandomNodeSplit
from torch_geometric.utils import degree, remove_self_loops, to_undirected

from torch_gic import GICConv, receptive_fields

from ..common.data import loading
from ..common.layers import LAYERS, About, convolve, pseudo_coordinates
from ..common.training import Recipe, loss_of, score_of, train

WEIGHT_DECAY = 0.1
NETWORKS = {name: LAYERS[name] for name in ("GICConv", "PNA", "GIN", "GraphSAGE", "GATv2", "GMMConv", "GCN")}
NETWORKS["GICConv, C = 1"] = lambda i, o, about: GICConv(i, o, num_components=1)
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
    standardise: bool = False  # features that are not words are brought to zero mean and unit variance


DATASETS = {
    **dict.fromkeys(("Cora", "CiteSeer", "PubMed"), Source("Planetoid", "accuracy")),  # the published split, ten seeds
    "Tolokers": Source("HeterophilousGraphDataset", "ROC AUC", True),  # ten published splits, as Minesweeper and Actor
    "Minesweeper": Source("HeterophilousGraphDataset", "ROC AUC", True),
    "Twitch": Source("Twitch", "accuracy"),  # trained on three countries, tested on two, ten seeds
    "Photo": Source("Amazon", "accuracy"),  # ten random splits, as CS
    "CS": Source("Coauthor", "accuracy"),
    "Actor": Source("Actor", "accuracy"),
}


class NodeData(NamedTuple):
    splits: list  # of ten runs
    num_features: int
    num_classes: int
    metric: str


def load_nodes(args, name):
    """A data set by its name."""
    kind, metric, standardise = DATASETS[name]
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


class NodeNetwork(torch.nn.Module):
    """An encoder of two layers, convolutions, each normalised and added to what it convolves, and a linear layer."""

    def __init__(self, make_conv, in_channels, width, out_channels, num_layers, dropout, about):
        super().__init__()
        self.dropout = dropout
        self.first, self.second = Linear(in_channels, width), Linear(width, width)
        self.convs = torch.nn.ModuleList(make_conv(width, width, about) for _ in range(num_layers))
        self.norms = torch.nn.ModuleList(LayerNorm(width, mode="node") for _ in range(num_layers))
        self.last = Linear(width, out_channels)

    def forward(self, x, edge_index, pseudo, **fields):
        x = self.second(self._drop(self._project(x))).relu()
        for conv, norm in zip(self.convs, self.norms, strict=True):
            h = self._drop(x)
            out = conv(h, edge_index, **fields) if fields else convolve(conv, h, edge_index, pseudo)
            x = x + norm(out).relu()
        return self.last(self._drop(x))

    def _drop(self, x):
        return F.dropout(x, self.dropout, self.training)

    def _project(self, x):
        """Features are words of a document or languages of a player: some are dropped."""
        if not x.is_sparse:
            return self.first(self._drop(x)).relu()
        x = torch.sparse_coo_tensor(x.indices(), self._drop(x.values()), x.shape, is_coalesced=True, check_invariants=False)
        return (torch.sparse.mm(x, self.first.weight.t()) + self.first.bias).relu()


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


def best_trials(found):
    """Of each run, the result of the trial that validation prefers: {run: result}, from pairs of a job and its result."""
    best = {}
    for job, result in found:
        if job["run"] not in best or result["validation"] > best[job["run"]]["validation"]:
            best[job["run"]] = result
    return best
