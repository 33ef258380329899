"""Which epoch counts: three protocols, whose figures must never be mixed, and tests of who is better."""

import math
import statistics

import numpy as np
from scipy.stats import t as student
from scipy.stats import wilcoxon

from .experiments import unpack
from .splits import FOLDS

PROTOCOLS = {
    "paper": "the best test epoch of each fold: optimistic, the test graphs choose it",
    "gin": "the one epoch with the best mean test accuracy over the folds (Xu et al. 2019): the test graphs choose it too",
    "fair": "the epoch that validation graphs choose, tested once (Errica et al. 2020)",
}


def accuracies(runs, protocol):
    """The accuracy of each run by repeat and fold, in percent, and the epochs that count."""
    if protocol == "fair":
        return {key: 100 * run["test"] for key, run in runs.items()}, {run["epoch"] for run in runs.values()}
    curves = np.stack([100 * unpack(run["curves"]["test"]) for run in runs.values()])
    if protocol == "paper":
        epochs = curves.argmax(axis=1)
    else:
        # A repeat is an experiment of its own: each has its epoch.
        repeats = np.array([key.split(".")[0] for key in runs])
        best = {repeat: curves[repeats == repeat].mean(axis=0).argmax() for repeat in repeats}
        epochs = np.array([best[repeat] for repeat in repeats])
    values = curves[np.arange(len(curves)), epochs]
    return dict(zip(runs, values.tolist(), strict=True)), {int(epoch) + 1 for epoch in epochs}


def summarise(runs, protocol):
    """Mean and standard deviation over the runs, and the number of folds and repeats."""
    values = list(accuracies(runs, protocol)[0].values())
    return {
        "mean": statistics.mean(values),
        "std": spread(values),
        "folds": len({key.split(".")[1] for key in runs}),
        "repeats": len({key.split(".")[0] for key in runs}),
        "minutes": sum(run["seconds"] for run in runs.values()) / 60,
    }


def fold_means(runs, protocol):
    """The accuracy in each fold. Repeats have the same test graphs: in a comparison, only their mean counts."""
    folds = {}
    for key, value in accuracies(runs, protocol)[0].items():
        folds.setdefault(key.split(".")[1], []).append(value)
    return {fold: statistics.mean(values) for fold, values in folds.items()}


def spread(values):
    """The standard deviation; None of a single value."""
    return statistics.stdev(values) if len(values) > 1 else None


def percent(mean, std):
    return f"{mean:.2f}" if std is None else f"{mean:.2f} ± {std:.2f}"


def compare(values, base, overlap=1 / (FOLDS - 1)):
    """Of the runs that both have: the mean difference, its p-values by t-test and by Wilcoxon (None if all differ alike),
    and the number of pairs.

    Folds share training graphs, so their differences vary less than those of new graphs would. The t-test corrects for it
    (Nadeau and Bengio 2003): the variance of the mean is `1 / n + overlap` of the variance, with test graphs over training
    graphs as the overlap. It is 0 for independent values.
    """
    # Equal differences shall be equal, which rounding errors would keep Wilcoxon from seeing.
    pairs = [round(values[key] - base[key], 9) for key in values if key in base]
    if not pairs:
        return None
    p_t = p_wilcoxon = None
    if spread(pairs):
        deviation = statistics.stdev(pairs) * math.sqrt(1 / len(pairs) + overlap)
        p_t = 2 * float(student.sf(abs(statistics.mean(pairs)) / deviation, len(pairs) - 1))
        p_wilcoxon = float(wilcoxon(pairs).pvalue)
    return {"difference": statistics.mean(pairs), "t": p_t, "wilcoxon": p_wilcoxon, "pairs": len(pairs)}
