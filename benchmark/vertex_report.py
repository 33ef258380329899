"""The part of RESULTS.md about nodes: the paper's table 2, and GIC beside GCN, GraphSAGE and GAT."""

import json

from . import printed
from .experiments import read_all
from .vertex_classification import COLUMNS, row
from .vertex_experiments import VertexSetting
from .vertex_tables import DATASETS, NETWORKS, RECIPES, TRIALS, candidates, choose

EXAMPLES = {"PPI": "ppi.py", "Reddit": "reddit.py"}
EXAMPLE_RECIPES = ("paper", "modern")


def result_path(folder, dataset, recipe):
    """Where `python -m benchmark.reproduce table2` keeps the figures of an example."""
    return folder / f"table2-{dataset}-{recipe}.json"


def write_vertices(report, folder):
    report.text("## Table 2: nodes")
    report.text(
        "Micro-averaged F1 score at the epoch that validation chooses. `paper` samples 25 and 10 neighbours as GraphSAGE does,"
        " `modern` takes the fields of whole graphs: see `examples/ppi.py` and `examples/reddit.py`, which are what is run."
    )
    rows = []
    for dataset in EXAMPLES:
        cells = []
        for recipe in EXAMPLE_RECIPES:
            path = result_path(folder, dataset, recipe)
            cells.append(f"{json.loads(path.read_text())['test']:.3f}" if path.exists() else "-")
        missing = "" if "-" not in cells else f"not run: `python -m benchmark.reproduce table2 --datasets {dataset}`"
        rows.append([dataset, f"{printed.TABLE2[dataset]:.3f}", *cells, missing])
    report.table(["", "printed", *(f"`{recipe}`" for recipe in EXAMPLE_RECIPES), ""], rows)

    report.text("## Nodes beside GCN, GraphSAGE and GAT")
    report.text(
        "By `python -m benchmark.vertex_classification --output benchmark/results`: percent, mean and standard deviation over"
        " ten runs, which are the published splits of Tolokers and seeds elsewhere; epoch chosen by validation nodes, tested"
        " once. Twitch: trained on DE, EN, FR, chosen on ES, tested on PT and RU. The same network of two layers around each"
        " convolution, `GICConv` with its defaults, and the same recipe. Dropout and weight decay are those of the best mean"
        f" validation score in the first {TRIALS} runs, from the same candidates for all. Channels, learning rates, epochs and"
        " candidates come from trials with an earlier form of GIC, some of whose test scores were seen."
    )
    runs = read_all(folder, "vertices", VertexSetting)
    rows = []
    for dataset in DATASETS:
        chosen = {network: choose(candidates(dataset, network), lambda s: runs.get(s, {})) for network in NETWORKS}
        found = {network: runs[setting] for network, setting in chosen.items() if setting}
        pairs = [f"{s.dropout:g}, {s.weight_decay:g}" if s else "-" for s in chosen.values()]
        recipe = RECIPES[dataset]
        rows.append([*row(dataset, found), " / ".join(pairs), recipe["hidden"], recipe["epochs"]])
    report.table([*COLUMNS, "dropout, weight decay of each", "channels", "epochs"], rows)
