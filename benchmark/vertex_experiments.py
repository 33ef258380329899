"""Experiments of node classification: their settings and one run, which `run_missing` of the graphs' harness repeats."""

import functools
import time
from typing import NamedTuple

import torch
import torch.nn.functional as F
from scipy.stats import mannwhitneyu

from .experiments import experiment_path, pack, versions
from .vertex_data import load_vertices
from .vertex_networks import NETWORKS, VertexNetwork, graph_arguments

AUC = ("Tolokers",)  # data sets that are judged by the area under the ROC curve, all others by accuracy


class VertexSetting(NamedTuple):
    """All that an experiment depends on but the seed or split."""

    dataset: str
    network: str
    epochs: int
    num_layers: int
    hidden: int
    dropout: float
    lr: float
    weight_decay: float
    deep: bool  # normalised over the nodes, and with shortcuts

    def path(self, folder):
        return experiment_path(folder, "vertices", self)


@functools.lru_cache(maxsize=1)
def _load(source, name):
    return load_vertices(source, name)


@functools.lru_cache(maxsize=1)
def _graphs(source, setting):
    """Fields or sparse matrices of the parts' graphs, kept for the next run; parts of one graph share them."""
    made = {}
    for split in _load(source, setting.dataset).splits:
        for part in split:
            if id(part.edge_index) not in made:
                made[id(part.edge_index)] = graph_arguments(setting.network, part, part.y.numel())
    return made


def prepare(source, setting):
    """Downloads and keeps the data; an error ends the command and not a process of it."""
    _load(source, setting.dataset)


def run(source, job):
    """Trains one network, and tests it once with the weights of the epoch that validation nodes choose."""
    torch.set_num_threads(1)
    setting, seed = job.setting, 1000 * job.repeat + job.fold
    data, graphs = _load(source, setting.dataset), _graphs(source, setting)
    split = data.splits[job.fold]
    torch.manual_seed(seed)
    size = (data.num_features, setting.hidden, data.num_classes)
    model = VertexNetwork(NETWORKS[setting.network], *size, setting.num_layers, setting.dropout, setting.deep)
    optimizer = torch.optim.Adam(model.parameters(), lr=setting.lr, weight_decay=setting.weight_decay)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, setting.epochs)

    def predict(part):
        graph, fields = graphs[id(part.edge_index)]
        return model(part.x, *graph, **fields)[part.vertices]

    @torch.no_grad()
    def judge(part):
        model.eval()
        out, y = predict(part), part.y[part.vertices]
        return score(out, y, setting.dataset), float(F.cross_entropy(out, y))

    start, best, curves = time.perf_counter(), None, {"loss": [], "validation": []}
    for epoch in range(1, setting.epochs + 1):
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(predict(split.training), split.training.y[split.training.vertices])
        loss.backward()
        optimizer.step()
        scheduler.step()
        value, entropy = judge(split.validation)
        curves["loss"].append(loss.item())
        curves["validation"].append(value)
        if best is None or (value, -entropy) > best[:2]:  # among equals the one with the lowest cross entropy
            best = value, -entropy, epoch, {name: weights.clone() for name, weights in model.state_dict().items()}
    seconds = time.perf_counter() - start
    model.load_state_dict(best[3])
    return {
        "validation": best[0],
        "test": judge(split.test)[0],
        "epoch": best[2],
        "seconds": round(seconds, 2),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "curves": {name: pack(curve) for name, curve in curves.items()},
        "versions": versions(),
    }


def score(out, y, dataset):
    """Accuracy, or the area under the ROC curve of two classes."""
    if dataset in AUC:
        return area_under_curve(out[:, 1] - out[:, 0], y)
    return float((out.argmax(dim=1) == y).double().mean())


def area_under_curve(value, y):
    """How often a node of class 1 has a larger value than one of class 0; equal values count a half."""
    ones, zeros = value[y == 1].numpy(), value[y == 0].numpy()
    return float(mannwhitneyu(ones, zeros, method="asymptotic").statistic / (ones.size * zeros.size))
