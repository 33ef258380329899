"""The experiments of the benchmark of nodes: one recipe per data set for all networks, but for what validation chooses."""

import itertools
import statistics

from .vertex_data import SOURCES
from .vertex_experiments import VertexSetting

PLANETOID = {"epochs": 60, "hidden": 64, "lr": 0.01, "deep": False, "num_layers": 2}
RECIPES = {
    "Cora": PLANETOID,
    "CiteSeer": PLANETOID,
    "PubMed": PLANETOID,
    "Tolokers": {"epochs": 60, "hidden": 64, "lr": 0.01, "deep": True, "num_layers": 2},
    "Twitch": {"epochs": 30, "hidden": 32, "lr": 0.01, "deep": True, "num_layers": 2},
}
DROPOUTS = {
    "Cora": (0.2, 0.5),
    "CiteSeer": (0.2, 0.5),
    "PubMed": (0.2, 0.5),
    "Tolokers": (0.0, 0.2, 0.5),
    "Twitch": (0.2, 0.5),
}
WEIGHT_DECAYS = {"Cora": (5e-4, 1e-2), "CiteSeer": (5e-4, 1e-2), "PubMed": (5e-4, 1e-2), "Tolokers": (0.0,), "Twitch": (5e-4,)}
TRIALS = 2  # the first runs, by whose validation scores each network gets its dropout and weight decay
NETWORKS = ["GIC", "GCN", "GraphSAGE", "GAT"]
DATASETS = list(SOURCES)


def candidates(dataset, network, quick=None):
    """The experiments that validation chooses from; with `quick` of so many epochs."""
    recipe = {**RECIPES[dataset], "epochs": quick or RECIPES[dataset]["epochs"]}
    grid = itertools.product(DROPOUTS[dataset], WEIGHT_DECAYS[dataset])
    return [VertexSetting(dataset, network, dropout=dropout, weight_decay=decay, **recipe) for dropout, decay in grid]


def choose(settings, read_runs):
    """The experiment with the best mean validation score in its first runs, or None before all have made them.

    Args:
        settings: The candidates.
        read_runs: Gives the runs of a setting.
    """
    scores = {}
    for setting in settings:
        runs = read_runs(setting)
        if any(f"0.{number}" not in runs for number in range(TRIALS)):
            return None
        scores[setting] = statistics.mean(runs[f"0.{number}"]["validation"] for number in range(TRIALS))
    return max(scores, key=scores.get)
