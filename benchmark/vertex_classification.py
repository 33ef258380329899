"""Node classification beside GCN, GraphSAGE and GAT of PyG: Cora, CiteSeer, PubMed, Tolokers and Twitch.

One network and one recipe per data set for all convolutions (vertex_tables.py has them): a linear layer, two convolutions, a
linear layer. Dropout and weight decay are chosen for each from the same few, by validation scores of the first two runs. The
epoch that validation nodes choose is tested once, in ten runs: the published splits of Tolokers, ten seeds elsewhere. Twitch
is trained on some countries and tested on two others.

Every finished run is written to a JSON file of the output folder, and is not made again: stop at any time and go on later.
"""

import argparse
from pathlib import Path

from .experiments import Source, read, run_missing
from .measure import print_table
from .protocols import percent, summarise
from .vertex_data import RUNS
from .vertex_experiments import AUC, prepare, run
from .vertex_tables import DATASETS, NETWORKS, TRIALS, candidates, choose

QUICK_EPOCHS = 2


def add_arguments(parser):
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=DATASETS, help="(default: all)")
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=NETWORKS, help="(default: all)")
    parser.add_argument("--runs", nargs="+", type=int, choices=range(RUNS), default=list(range(RUNS)), help="(default: all)")
    parser.add_argument("--quick", action="store_true", help=f"to see that it works: {QUICK_EPOCHS} epochs")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time, each on one core (default: %(default)s)")
    parser.add_argument("--root", type=Path, default=Path("data"), help="where PyG keeps the data (default: %(default)s)")
    parser.add_argument("--data-url", help="folder that holds planetoid, heterophilous and twitch (default: PyG's sources)")
    parser.add_argument("--output", type=Path, default=Path("results"), help="folder of the results (default: %(default)s)")


def metric(dataset):
    return "ROC AUC" if dataset in AUC else "accuracy"


def row(dataset, runs):
    """Figures of each network as text, and whether GIC is within a deviation of the best of the others."""
    summaries = {network: summarise(found, "fair") for network, found in runs.items() if found}
    cells = []
    for network in NETWORKS:
        summary = summaries.get(network)
        note = "" if summary is None or summary["folds"] == RUNS else f" ({summary['folds']} runs)"
        cells.append("-" if summary is None else percent(summary["mean"], summary["std"]) + note)
    peers = [summary for network, summary in summaries.items() if network != "GIC"]
    verdict = "-"
    if "GIC" in summaries and peers:
        best = max(peers, key=lambda summary: summary["mean"])
        gap = summaries["GIC"]["mean"] - best["mean"]
        reached = "yes" if gap >= 0 else "within a deviation" if gap >= -(best["std"] or 0) else "no"
        verdict = f"{reached} ({gap:+.2f})"
    return [f"{dataset} [{metric(dataset)}]", *cells, verdict]


COLUMNS = ["", *NETWORKS, "GIC reaches the best other"]


def main():
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.vertex_classification",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    args = parser.parse_args()
    source, rows = Source(args.root, args.data_url, None), []
    for dataset in args.datasets:
        runs = {}
        for network in args.networks:
            settings = candidates(dataset, network, QUICK_EPOCHS if args.quick else None)
            prepare(source, settings[0])
            run_missing(source, settings, args.output, 1, range(TRIALS), args.jobs, run)
            chosen = choose(settings, lambda setting: read(setting.path(args.output)))
            if chosen is not None:  # None if a run has failed
                run_missing(source, [chosen], args.output, 1, args.runs, args.jobs, run)
                runs[network] = read(chosen.path(args.output))
        rows.append(row(dataset, runs))
    print_table("Percent, with the standard deviation over the runs", COLUMNS, rows)


if __name__ == "__main__":
    main()
