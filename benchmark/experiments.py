"""Experiments of graph classification: their settings, their runs, and the JSON files that keep them.

An experiment is a file of the results folder. Its runs, one per fold and repeat, are written as they finish, and are not made
again if they are there.
"""

import argparse
import base64
import functools
import hashlib
import json
import platform
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch_geometric

import torch_gic
from torch_gic import GIC

from .graph_networks import GIC_NETWORKS, NETWORKS
from .graphs import load_graphs
from .mixture import layer_entropies
from .splits import load_folds, load_splits
from .training import RECIPES, train_fair, train_tested
from .workers import finished

OWN = "own"  # folds that are made here, not taken from a file


def experiment_path(folder, level, setting):
    """The file of an experiment on whole graphs or on nodes."""
    key = hashlib.sha256(json.dumps(setting._asdict(), sort_keys=True).encode()).hexdigest()[:8]
    return folder / f"{level}-{setting.dataset}-{setting.network}-{key}.json"


class Setting(NamedTuple):
    """All that an experiment depends on but the fold and the repeat."""

    dataset: str
    network: str
    fair: bool  # tested once at an epoch that validation graphs choose; else, tested after every epoch
    epochs: int
    recipe: str = "default"
    num_scales: int | None = None  # of GIC networks, as the next three; None: the default of the class
    num_components: int | None = None
    max_neighbors: int | None = None
    architecture: str | None = None
    splits: str = OWN
    attributes: str = "labels"

    def path(self, folder):
        return experiment_path(folder, "graphs", self)


class Source(NamedTuple):
    """Where the data comes from."""

    root: Path
    data_url: str | None
    splits: Path | None


class Job(NamedTuple):
    setting: Setting
    repeat: int
    fold: int

    @property
    def key(self):
        return f"{self.repeat}.{self.fold}"

    def describe(self):
        return f"{self.setting.network} on {self.setting.dataset}"


@functools.lru_cache(maxsize=2)
def _load(source, *arguments):
    """Kept in each process: reading a data set takes longer than an epoch."""
    return load_graphs(argparse.Namespace(root=source.root, data_url=source.data_url), *arguments)


def load_setting(source, setting):
    """The graphs of a setting, with fields if its network takes them."""
    scales = _scales(setting) if setting.network in GIC_NETWORKS else None
    return _load(source, setting.dataset, scales, setting.max_neighbors, setting.attributes)


def _scales(setting):
    """Those of the setting, or of the network itself."""
    if setting.num_scales is not None:
        return setting.num_scales
    network = GIC.as_printed(1, 1) if setting.network == "GIC-printed" else GIC(1, 1)
    return network.layers[0].num_scales


def prepare(source, setting):
    """Downloads and keeps the data; an error ends the command and not a process of it."""
    _splits(source, setting, load_setting(source, setting).y)


def _splits(source, setting, y):
    path = None if setting.splits == OWN else source.splits
    return (load_splits if setting.fair else load_folds)(path, setting.dataset, y)


def run(source, job):
    """Trains one network; gives its result with the curves."""
    torch.set_num_threads(1)
    setting, seed = job.setting, 1000 * job.repeat + job.fold
    graphs = load_setting(source, setting)
    split = _splits(source, setting, graphs.y)[job.fold]
    graphs.scale(split.training)
    torch.manual_seed(seed)
    model = NETWORKS[setting.network](graphs, split.training, setting)
    recipe = RECIPES[setting.recipe]
    sample = graphs.batch(split.training[: recipe.batch_size])
    before = layer_entropies(model, sample)
    train = train_fair if setting.fair else train_tested
    result, curves = train(model, graphs, split, recipe, setting.epochs, seed)
    if before:
        result["entropy"] = {"before": before, "after": layer_entropies(model, sample)}
    result["parameters"] = sum(parameter.numel() for parameter in model.parameters())
    result["curves"] = {name: pack(curve) for name, curve in curves.items()}
    result["versions"] = versions()
    return result


def run_missing(source, settings, folder, repeats, folds, jobs, make_run=run):
    """Makes the runs that are not there, several at a time; one experiment after the other, so that what is there of a command
    that was stopped is complete. A run is made by `make_run(source, job)`, that of graphs or that of nodes."""
    wanted = [Job(setting, repeat, fold) for setting in settings for repeat in range(repeats) for fold in folds]
    missing = [job for job in wanted if job.key not in read(job.setting.path(folder))]
    for job, result in finished(make_run, source, missing, jobs, len(wanted), Job.describe):
        _add(job, result, folder)


def read(path):
    """The runs in a file by repeat and fold."""
    return json.loads(path.read_text())["runs"] if path.exists() else {}


def read_all(folder, level="graphs", kind=Setting):
    """The runs of all experiments of a level in a folder, by their settings, which are of this kind."""
    contents = [json.loads(path.read_text()) for path in sorted(folder.glob(f"{level}-*.json"))]
    return {kind(**content["setting"]): content["runs"] for content in contents}


def _add(job, result, folder):
    path = job.setting.path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    runs = {**read(path), job.key: result}
    content = {"setting": job.setting._asdict(), "runs": dict(sorted(runs.items()))}
    part = path.with_suffix(".part")  # a command that is killed while it writes shall not take the earlier runs with it
    part.write_text(json.dumps(content, indent=1) + "\n")
    part.replace(path)


def versions():
    modules = {"torch_gic": torch_gic, "torch": torch, "PyG": torch_geometric}
    return {name: module.__version__ for name, module in modules.items()} | {"Python": platform.python_version()}


def pack(curve):
    """A curve as text: the numbers in single precision, compressed."""
    return base64.b64encode(zlib.compress(np.asarray(curve, dtype="<f4").tobytes())).decode()


def unpack(text):
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<f4").astype(float)
