"""Means, intervals and tests over folds that share training graphs."""

import math
import statistics
from typing import NamedTuple

from scipy.stats import t as student
from statsmodels.stats.multitest import multipletests

LEVEL = 0.05


class Comparison(NamedTuple):
    difference: float  # the mean over the folds
    low: float  # of the interval of 95 %
    high: float
    p: float | None  # None where all differences are alike
    folds: int


def compare(values, base, share):
    r"""The corrected resampled t-test of Nadeau and Bengio (2003) over the folds that both have; None if they share fewer than
    two.

    Folds share training graphs, so that their differences vary less than those of new data would. The variance of the mean is
    therefore :math:`(1/n + \rho) s^2`, with :math:`\rho` the test graphs over the training graphs (``share``).
    """
    pairs = [round(values[fold] - base[fold], 9) for fold in values if fold in base]
    if len(pairs) < 2:
        return None
    mean, deviation = statistics.mean(pairs), statistics.stdev(pairs)
    error, freedom = deviation * math.sqrt(1 / len(pairs) + share), len(pairs) - 1
    reach = float(student.ppf(1 - LEVEL / 2, freedom)) * error
    p = 2 * float(student.sf(abs(mean) / error, freedom)) if error > 0 else None
    return Comparison(mean, mean - reach, mean + reach, p, len(pairs))


def holm(comparisons):
    """The same by name, with p-values corrected for the number of tests by Holm's method; those without a p stay so."""
    tested = {name: found for name, found in comparisons.items() if found is not None and found.p is not None}
    if not tested:
        return dict(comparisons)
    corrected = multipletests([found.p for found in tested.values()], method="holm")[1]
    return comparisons | {name: found._replace(p=float(p)) for (name, found), p in zip(tested.items(), corrected, strict=True)}


def spread(values):
    """The standard deviation; None of a single value."""
    return statistics.stdev(values) if len(values) > 1 else None


def mean_and_spread(values):
    """As text."""
    values = list(values)
    mean, deviation = statistics.mean(values), spread(values)
    return f"{mean:.2f}" if deviation is None else f"{mean:.2f} ± {deviation:.2f}"
