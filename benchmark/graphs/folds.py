"""Which graphs to train on, to choose by and to test with."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

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
