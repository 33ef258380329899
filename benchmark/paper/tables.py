"""What each table of the paper needs: networks by column, data sets, epochs."""

from ..graphs.networks import DEPTHS, SIZES
from .printed import DATASETS

ABSENT = ("REDDIT-MULTI-5K", "REDDIT-MULTI-12K")  # of Table 1, no copy without the network of the collection itself
CHEMICAL = ["MUTAG", "PTC", "NCI1", "NCI109", "ENZYMES", "PROTEINS"]  # of Tables 3 to 5
MEASURED = ["Letter-high", "COIL-DEL", "PROTEINS_full", "ENZYMES"]  # beyond the paper, with all features
EPOCHS = {  # for the sake of time; the paper has 300
    "MUTAG": 100,
    "PTC": 100,
    "NCI1": 30,
    "NCI109": 30,
    "ENZYMES": 100,
    "PROTEINS": 30,
    "COLLAB": 10,
    "REDDIT-BINARY": 10,
    "IMDB-BINARY": 50,
    "IMDB-MULTI": 50,
    "Letter-high": 30,
    "COIL-DEL": 20,
    "PROTEINS_full": 30,
}
TABLES = {  # name: (networks, data sets)
    "table1": (["GIC", "GIC.as_printed"], [name for name in DATASETS if name not in ABSENT]),
    "table3": (["ChebNet, VIGMMPool", "GCN, VIGMMPool", "GIC, flat", "GIC, coarsened", "GIC.as_printed"], CHEMICAL),
    "table4": ([f"{name}, K = C = {size}" for name in ("GIC", "GIC.as_printed") for size in SIZES], CHEMICAL),
    "table5": ([f"{name}, N = {depth}" for name in ("GIC", "GIC.as_printed") for depth in DEPTHS], CHEMICAL),
    "optimiser": (["GIC"], ["MUTAG"]),
}
PROTOCOLS = {
    "paper": "the best test epoch of each fold: optimistic, the test graphs choose it",
    "gin": "the one epoch with the best mean test accuracy over the folds (Xu et al. 2019): the test graphs choose it too",
}


def accuracies(runs, protocol):
    """The accuracy of each fold in percent, from the curves of runs by fold."""
    curves = {fold: run["curves"]["score"] for fold, run in runs.items()}
    if protocol == "paper":
        return {fold: 100 * max(curve) for fold, curve in curves.items()}
    sums = [sum(values) for values in zip(*curves.values(), strict=True)]
    epoch = sums.index(max(sums))
    return {fold: 100 * curve[epoch] for fold, curve in curves.items()}
