"""Does pooling pay in accuracy, and does it matter which? One command, tables, a plot.

Networks that are alike but for their pooling are trained on the same folds, from the same weights and with the same batches.
Validation graphs choose the epoch, and test graphs are seen once.

Each finished run is appended to a file of the output folder, and a run that was stopped goes on from there: runs that are in
the file with the same settings are not made again, also if torch_gic has changed since. Delete their lines, or choose another
--output, to have them anew.
"""

import argparse
import functools
import json
import statistics
from pathlib import Path

import torch

import torch_gic
from torch_gic.nn.models.gic import READOUTS

from .data import add_data_arguments
from .graphs import load_graphs
from .measure import print_table
from .pooling_accuracy_plot import plot
from .pooling_networks import NETWORKS, POOLERS, make_network
from .protocols import compare, percent, spread
from .splits import FOLDS, load_splits
from .training import RECIPES, train_fair
from .workers import finished

BASE = "vigmm"  # what all others are compared with
SETTINGS = ("epochs", "hidden", "ratio", "readout")


def make_runs(args):
    """The settings of all runs. Poolings take turns first, so that what is there of a run that is stopped is comparable."""
    common = {name: getattr(args, name) for name in SETTINGS}
    common["splits"] = args.splits.name if args.splits else "own"
    return [
        {"dataset": dataset, "network": network, "pooler": pooler, "seed": seed, "fold": fold, **common}
        for seed in range(args.seeds)
        for fold in args.folds
        for dataset in args.datasets
        for network in args.networks
        for pooler in args.poolers
    ]


@functools.cache
def _load(root, data_url, splits, name):
    """Once in each process. A data set is small, and reading it takes longer than an epoch."""
    graphs = load_graphs(argparse.Namespace(root=root, data_url=data_url), name)
    return graphs, load_splits(splits, name, graphs.y)


def run(source, config):
    """Trains and tests one network."""
    torch.set_num_threads(1)
    graphs, splits = _load(*source, config["dataset"])
    split, seed = splits[config["fold"]], 1000 * config["seed"] + config["fold"]
    graphs.scale(split.training)
    torch.manual_seed(seed)
    model = make_network(
        *(config[name] for name in ("network", "pooler")),
        graphs.x.size(1),
        graphs.num_classes,
        *(config[name] for name in ("hidden", "ratio", "readout")),
        graphs.mean_size(split.training),
    )
    return train_fair(model, graphs, split, RECIPES["default"], config["epochs"], seed)[0]


def describe(config):
    return f"{config['pooler']} in {config['network']} on {config['dataset']}"


def key(config):
    return json.dumps(config, sort_keys=True)


def read_results(path):
    """The results in the file by their settings."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {key(entry["config"]): entry["result"] for entry in map(json.loads, lines)}


def make_missing(args, path, runs):
    source = (args.root, args.data_url, args.splits)
    for name in args.datasets:
        _load(*source, name)  # here, so that it is downloaded once, and an error ends the command and not a worker
    known = read_results(path)
    missing = [config for config in runs if key(config) not in known]
    path.parent.mkdir(parents=True, exist_ok=True)
    for config, result in finished(run, source, missing, args.jobs, len(runs), describe):
        entry = {"config": config, "result": result, "torch_gic": torch_gic.__version__, "torch": torch.__version__}
        with path.open("a") as file:
            file.write(json.dumps(entry) + "\n")


def collect(path, runs):
    """The results of these runs: {(dataset, network): {pooler: {(seed, fold): result}}}."""
    known, collected = read_results(path), {}
    for config in runs:
        if key(config) in known:
            group = collected.setdefault((config["dataset"], config["network"]), {})
            group.setdefault(config["pooler"], {})[config["seed"], config["fold"]] = known[key(config)]
    return collected


def percents(results, name):
    return {run: 100 * result[name] for run, result in results.items()}


def mean_and_spread(results, name):
    values = list(percents(results, name).values())
    return percent(statistics.mean(values), spread(values))


def difference(results, base):
    """Cells of the comparison with the base: difference, p-values, number of pairs."""
    found = None if results is base else compare(percents(results, "test"), percents(base, "test"))
    if found is None:
        return ["-"] * 4
    p_values = ("-" if found[test] is None else f"{found[test]:.3f}" for test in ("t", "wilcoxon"))
    return [f"{found['difference']:+.2f}", *p_values, str(found["pairs"])]


def print_tables(collected, epochs):
    columns = ["pooling", "runs", "test [%]", "validation [%]", "last epochs [%]", "s / epoch"]
    columns += [f"- {BASE}", "p (t)", "p (Wilcoxon)", "pairs"]
    for (dataset, network), poolers in collected.items():
        rows = []
        for pooler, results in poolers.items():
            accuracies = [mean_and_spread(results, name) for name in ("test", "validation", "validation_last")]
            seconds = statistics.mean(result["seconds"] for result in results.values()) / epochs
            rows.append(
                [pooler, str(len(results)), *accuracies, f"{seconds:.2f}", *difference(results, poolers.get(BASE, {}))]
            )
        print_table(f"{dataset}, {network}", columns, rows)
    print(
        "\n±: standard deviation over all runs (seeds and folds). Validation is that of the epoch it chose, so too high; last"
        f"\nepochs: its mean over the last ten. - {BASE}: mean difference in test accuracy over pairs of runs of the same seed"
        "\nand fold; p: of no difference. Folds share training graphs, and many poolings are compared: p is too small."
    )


def parse_args():
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.pooling_accuracy", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    folds = list(range(FOLDS))

    def add(name, text, **options):
        parser.add_argument(name, help=f"{text} (default: %(default)s)", **options)

    add("--datasets", "names in the TU collection", nargs="+", default=["ENZYMES", "PROTEINS"])
    add("--networks", "networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    needs = "metis needs pymetis, those after 'none' need torch-geometric-pool, and of these graclus torch-cluster too"
    add("--poolers", f"poolings; {needs}", nargs="+", choices=POOLERS, default=list(POOLERS))
    add("--seeds", "number of runs per fold, each from other weights", type=int, default=3)
    add("--folds", "numbers of folds", nargs="+", type=int, choices=folds, default=folds)
    add("--epochs", "epochs of a run", type=int, default=30)
    add("--hidden", "channels of all layers", type=int, default=32)
    add("--ratio", "share of the nodes that a pooling keeps", type=float, default=0.5)
    add("--readout", "of all levels, or the maximum of the last one, as printed", choices=READOUTS, default="all")
    add("--jobs", "runs at the same time, each on one core", type=int, default=1)
    parser.add_argument("--splits", type=Path, help="zip file of the 'fair comparison' splits (default: own stratified folds)")
    add_data_arguments(parser)
    add("--output", "folder of pooling_accuracy.jsonl and .png", type=Path, default=Path("results"))
    parser.add_argument("--summary", action="store_true", help="only print the tables of the runs that are there")
    args = parser.parse_args()
    for name in ("seeds", "epochs", "hidden", "jobs"):
        if getattr(args, name) < 1:
            parser.error(f"Expected --{name} to be at least 1 (got {getattr(args, name)})")
    if not 0 < args.ratio <= 1:
        parser.error(f"Expected --ratio to be in (0, 1] (got {args.ratio})")
    return args


def main():
    args = parse_args()
    path, runs = args.output / "pooling_accuracy.jsonl", make_runs(args)
    if not args.summary:
        make_missing(args, path, runs)
    collected = collect(path, runs)
    if not collected:
        raise SystemExit(f"{path} has no runs of these settings: {json.dumps(runs[0])} and so on")
    print_tables(collected, args.epochs)
    plot(collected, BASE, path.with_suffix(".png"))
    print(f"Runs: {path}, plot: {path.with_suffix('.png')}")


if __name__ == "__main__":
    main()
