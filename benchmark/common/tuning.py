"""Tuning with the same few trials for every network: the same settings, drawn once."""

from sklearn.model_selection import ParameterSampler

GRID = {"lr": [5e-4, 1e-3, 3e-3], "width": [32, 64, 128], "layers": [2, 3, 4], "dropout": [0.0, 0.2, 0.5]}
DEFAULT = {"lr": 1e-3, "width": 64, "layers": 3, "dropout": 0.0}  # the first trial


def candidates(count, grid=GRID, default=DEFAULT):
    """The settings of the trials: the default, then others that a generator with seed 0 draws from the grid."""
    drawn = ParameterSampler(grid, count, random_state=0)
    return [default, *(settings for settings in drawn if settings != default)][:count]


def best(settings, results):
    """The settings with the highest validation score; the first of equals. Failed trials are None."""
    pairs = [(result["validation"], -number) for number, result in enumerate(results) if result is not None]
    return settings[-max(pairs)[1]] if pairs else None
