"""The experiments of the benchmark of vertices: one recipe a data set, the same for all networks."""

from .vertex_data import SOURCES
from .vertex_experiments import VertexSetting

# Few labels: two steps on the graph are two layers, or one of GIC with K = 2.
PLANETOID = {"epochs": 60, "hidden": 64, "dropout": 0.5, "lr": 0.01, "weight_decay": 5e-4, "deep": False, "num_layers": 2}
RECIPES = {
    "Cora": PLANETOID,
    "CiteSeer": PLANETOID,
    "PubMed": PLANETOID,
    "Tolokers": {"epochs": 60, "hidden": 64, "dropout": 0.2, "lr": 0.01, "weight_decay": 0.0, "deep": True, "num_layers": 2},
    "Twitch": {"epochs": 30, "hidden": 32, "dropout": 0.5, "lr": 0.01, "weight_decay": 5e-4, "deep": True, "num_layers": 2},
}
SMALL = {"num_scales": 2, "num_components": 3, "max_neighbors": 32}
MIXTURES = {  # of GIC, and its number of layers where it is another one
    "Cora": {**SMALL, "num_layers": 1},
    "CiteSeer": {**SMALL, "num_layers": 1},
    "PubMed": {**SMALL, "num_layers": 1},
    "Tolokers": {"num_scales": 3, "num_components": 5, "max_neighbors": 64},
    "Twitch": SMALL,
}
NETWORKS = ["GIC", "GCN", "GraphSAGE", "GAT"]
DATASETS = list(SOURCES)


def settings(dataset, quick=None):
    """The experiment of each network; with `quick` so many epochs."""
    recipe = {**RECIPES[dataset], "epochs": quick or RECIPES[dataset]["epochs"]}
    return {
        network: VertexSetting(dataset, network, **{**recipe, **(MIXTURES[dataset] if network == "GIC" else {})})
        for network in NETWORKS
    }
