"""Which graphs to train on, to choose by and to test with: ten folds of a data set."""

import itertools
import json
import zipfile
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

FOLDS = 10


class Split(NamedTuple):
    training: Tensor
    validation: Tensor | None  # None: ten folds without one, all other graphs are trained on
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


def load_folds(path, name, y):
    """Ten folds without validation graphs: from a zip file with `NAME/train_idx-K.txt` and `NAME/test_idx-K.txt`, K from 1 to
    10 and one graph number per line, or stratified ones of our own where no file is given."""
    if path is None:
        fold = stratified_folds(y.numpy(), FOLDS, seed=0)
        return [Split(_numbers(fold != k), None, _numbers(fold == k)) for k in range(FOLDS)]
    with zipfile.ZipFile(path) as file:
        names = [[f"{name}/{part}_idx-{k}.txt" for part in ("train", "test")] for k in range(1, FOLDS + 1)]
        absent = [member for pair in names for member in pair if member not in file.namelist()]
        if absent:
            raise SystemExit(f"{path} has no {absent[0]}. Leave out --splits to make folds.")
        folds = [[np.loadtxt(file.open(member), dtype=int, ndmin=1) for member in pair] for pair in names]
    for training, test in folds:
        if np.intersect1d(training, test).size or max(training.max(), test.max()) >= len(y):
            raise SystemExit(f"{path} does not split the {len(y)} graphs of {name}")
    return [Split(torch.from_numpy(training), None, torch.from_numpy(test)) for training, test in folds]


def _numbers(chosen):
    return torch.from_numpy(np.flatnonzero(chosen))
