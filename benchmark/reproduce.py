"""Regenerates the tables of the paper: runs what is missing, and writes what is there to RESULTS.md.

table1: GIC on all data sets, the default network and the printed one. table2: nodes of PPI and Reddit, by the examples of
these names. table3: other convolutions, and no coarsening. table4: the number of scales and components. table5: the number of
layers. Beyond the paper, peers: other networks under the fair protocol; mixture: does it matter how many components there are,
and are they idle; attributes: the peers with all features of a data set; recipes: the paper's optimiser.

Runs that are there are not made again; stop at any time and go on later. A data set that cannot be had is left out. Peers need
--splits fair_comparison_splits.zip, with the splits of "A Fair Comparison of Graph Neural Networks for Graph
Classification": docs/tables.md says how to make it.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from .experiments import Source, prepare, read_all, run_missing
from .graph_classification import add_source
from .protocols import summarise
from .report import write_report
from .splits import FOLDS
from .tables import FAIR_SPLITS, TABLES
from .vertex_report import EXAMPLE_RECIPES, EXAMPLES, result_path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmark" / "results"
QUICK_FOLDS, QUICK_EPOCHS = 2, 2


def parse_args():
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.reproduce", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "tables",
        nargs="*",
        metavar="TABLE",
        help="table1 to table5, peers, mixture, attributes or recipes (default: only the report)",
    )
    parser.add_argument("--datasets", nargs="+", help="only these (default: all of a table)")
    parser.add_argument("--columns", nargs="+", help="only these columns of a table (default: all)")
    parser.add_argument(
        "--folds", nargs="+", type=int, choices=range(FOLDS), default=list(range(FOLDS)), help="(default: all)"
    )
    parser.add_argument("--repeats", type=int, default=1, help="runs per fold (default: %(default)s)")
    text = f"to see that it works: {QUICK_FOLDS} folds, {QUICK_EPOCHS} epochs, MUTAG, in another folder (results/quick)"
    parser.add_argument("--quick", action="store_true", help=text)
    parser.add_argument("--summary", choices=["json"], help="print what has been collected, and run nothing")
    add_source(parser)
    parser.add_argument("--output", type=Path, help="folder of the results (default: benchmark/results)")
    args = parser.parse_args()
    for name in args.tables:
        if name not in ("table2", *TABLES):
            parser.error(f"Expected table2 or one of {', '.join(TABLES)} (got {name})")
    if args.output is None:
        args.output = Path("results/quick/results") if args.quick else RESULTS
    if args.quick:
        args.datasets, args.folds = args.datasets or ["MUTAG"], list(range(QUICK_FOLDS))
    return args


def summary(folder, epochs=None):
    """What has been collected of GIC: {dataset: {protocol: {mean, std, folds, epochs}}}. Of several experiments on a data set
    the one of a table counts (of a quick trial, with its epochs), or else the longest; the default network comes first, and
    without any runs of it the other."""
    networks = ("GIC-printed", "GIC")
    tables = (TABLES["table1"], TABLES["peers"])
    columns = [make(dataset) for make, datasets in tables for dataset in datasets]
    tabled = {settings[network] for settings in columns for network in networks if network in settings}
    if epochs:
        tabled = {setting._replace(epochs=epochs) for setting in tabled}
    runs = {
        setting: runs
        for setting, runs in read_all(folder).items()
        if setting.network in networks and setting.attributes != "all"  # as in the paper
    }
    collected = {}
    for setting in sorted(runs, key=lambda setting: (networks.index(setting.network), setting in tabled, setting.epochs)):
        for protocol in ("fair",) if setting.fair else ("paper", "gin"):
            told = {name: getattr(setting, name) for name in ("epochs", "network", "num_scales", "num_components")}
            collected.setdefault(setting.dataset, {})[protocol] = {**summarise(runs[setting], protocol), **told}
    return collected


def run_table(name, args):
    make, datasets = TABLES[name]
    source = Source(args.root, args.data_url, args.splits)
    if name == "peers" and (args.splits is None or args.splits.name != FAIR_SPLITS):
        raise SystemExit(f"{name} are compared on published splits: expected --splits .../{FAIR_SPLITS} (got {args.splits})")
    for dataset in args.datasets or datasets:
        columns = {str(column): setting for column, setting in make(dataset).items()}
        unknown = set(args.columns or ()) - set(columns)
        if unknown:
            raise SystemExit(
                f"Expected --columns of {name} to be among {', '.join(columns)} (got {', '.join(sorted(unknown))})"
            )
        settings = [columns[column] for column in args.columns or columns]
        if args.quick:
            settings = [setting._replace(epochs=QUICK_EPOCHS) for setting in settings]
        try:
            for setting in settings:
                prepare(source, setting)
        except SystemExit as error:
            print(f"{name}, {dataset}: not run. {error}")
            continue
        print(f"{name}, {dataset}")
        run_missing(source, settings, args.output, args.repeats, args.folds, args.jobs)


def run_examples(args):
    """Table 2: the examples on PPI and Reddit, each a process that goes on from its checkpoint."""
    for dataset in args.datasets or EXAMPLES:
        if dataset not in EXAMPLES:
            continue
        for recipe in EXAMPLE_RECIPES:
            path = result_path(args.output, dataset, recipe)
            if path.exists():
                continue
            command = [
                sys.executable,
                str(ROOT / "examples" / EXAMPLES[dataset]),
                "--recipe",
                recipe,
                "--root",
                str(args.root),
            ]
            command += ["--result", str(path), "--checkpoint", str(path.with_suffix(".pt"))]
            command += ["--data-url", args.data_url] if args.data_url else []
            command += ["--epochs", str(QUICK_EPOCHS)] if args.quick else []
            print(f"table2, {dataset}, {recipe}", flush=True)
            environment = {
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
            }
            if subprocess.run(command, env=environment).returncode != 0:
                print(f"table2, {dataset}, {recipe}: not run")


def main():
    args = parse_args()
    epochs = QUICK_EPOCHS if args.quick else None
    if args.summary:
        print(json.dumps(summary(args.output, epochs), indent=1))
        return
    for name in args.tables:
        if name == "table2":
            run_examples(args)
        else:
            run_table(name, args)
    print(f"Report: {write_report(args.output, epochs)}")


if __name__ == "__main__":
    main()
