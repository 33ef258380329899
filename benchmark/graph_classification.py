"""Ten-fold graph classification on any data set of the TU collection, under one of three protocols.

Node features are the one-hot label and the degree, or the degree alone where there are no labels, and measured ones on
request; all numbers have zero mean and unit variance on the training graphs. Receptive fields are computed once and kept
beside the data.

Every finished fold is written to a JSON file of the output folder, with its curves, and is not made again. `paper` and `gin`
read the same runs.
"""

import argparse
from pathlib import Path

from .data import add_data_arguments
from .experiments import OWN, Setting, Source, prepare, read, run_missing
from .graph_networks import GIC_NETWORKS, NETWORKS
from .graphs import ATTRIBUTES
from .protocols import PROTOCOLS, accuracies, percent, summarise
from .splits import FOLDS
from .training import RECIPES


def add_source(parser):
    """The arguments that say where data comes from and results go."""
    parser.add_argument("--jobs", type=int, default=1, help="folds at the same time, each on one core (default: %(default)s)")
    add_data_arguments(parser)
    parser.add_argument(
        "--splits",
        type=Path,
        help="zip file of splits: for 'fair' those of the 'fair comparison' (NAME_splits.json), else NAME/train_idx-K.txt and"
        " NAME/test_idx-K.txt (default: own stratified folds)",
    )


def parse_args():
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.graph_classification",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )

    def add(name, text, **options):
        parser.add_argument(name, help=f"{text} (default: %(default)s)", **options)

    add("--dataset", "name in the TU collection", default="MUTAG")
    add("--protocol", "; ".join(f"{name}: {text}" for name, text in PROTOCOLS.items()), choices=PROTOCOLS, default="paper")
    add("--network", "the network", choices=NETWORKS, default="GIC")
    add(
        "--attributes", "; ".join(f"{name}: {text}" for name, text in ATTRIBUTES.items()), choices=ATTRIBUTES, default="labels"
    )
    add("--recipe", "how to optimise", choices=RECIPES, default="default")
    parser.add_argument("--epochs", type=int, help="epochs of a run (default: those of the recipe)")
    parser.add_argument("--num-scales", type=int, help="K, of GIC (default: that of the network)")
    parser.add_argument("--num-components", type=int, help="C, of GIC (default: that of the network)")
    parser.add_argument(
        "--max-neighbors", type=int, help="the largest number of field members per node, of GIC (default: all)"
    )
    parser.add_argument("--architecture", help="layers of GIC, in the paper's notation (default: those of the network)")
    add("--repeats", "runs per fold, each from other weights", type=int, default=1)
    add("--folds", "numbers of folds", nargs="+", type=int, choices=range(FOLDS), default=list(range(FOLDS)))
    add_source(parser)
    add("--output", "folder of the results", type=Path, default=Path("results"))
    args = parser.parse_args()
    for name in ("epochs", "num_scales", "num_components", "max_neighbors", "repeats", "jobs"):
        value = getattr(args, name)
        if value is not None and value < 1:
            parser.error(f"Expected --{name.replace('_', '-')} to be at least 1 (got {value})")
    if args.architecture and args.network == "GIC-flat":
        parser.error("Expected no --architecture of GIC-flat, which has convolutions alone")
    return args


def make_setting(args):
    names = ("num_scales", "num_components", "max_neighbors", "architecture") if args.network in GIC_NETWORKS else ()
    return Setting(
        args.dataset,
        args.network,
        args.protocol == "fair",
        args.epochs or RECIPES[args.recipe].epochs,
        args.recipe,
        splits=args.splits.name if args.splits else OWN,
        attributes=args.attributes,
        **{name: getattr(args, name) for name in names},
    )


def main():
    args = parse_args()
    setting, source = make_setting(args), Source(args.root, args.data_url, args.splits)
    prepare(source, setting)
    run_missing(source, [setting], args.output, args.repeats, args.folds, args.jobs)
    path = setting.path(args.output)
    runs = read(path)
    if not runs:
        raise SystemExit("No run has succeeded")
    summary, (_, epochs) = summarise(runs, args.protocol), accuracies(runs, args.protocol)
    chosen = f"epoch {min(epochs)}" if len(epochs) == 1 else f"epochs {min(epochs)} to {max(epochs)}"
    print(
        f"{args.dataset}, {args.network}, protocol {args.protocol}: {percent(summary['mean'], summary['std'])} %"
        f"  (folds: {summary['folds']}, repeats: {summary['repeats']}, epochs: {setting.epochs}, chosen: {chosen};"
        f" {summary['minutes']:.1f} minutes)"
    )
    print(f"{args.protocol}: {PROTOCOLS[args.protocol]}. ±: standard deviation over the runs.\nRuns: {path}")


if __name__ == "__main__":
    main()
