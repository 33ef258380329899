"""The tables of the paper, measured again.

table1: GIC on all data sets that are available.
table2: nodes of PPI and Reddit by the examples of these names, and of circuits in the format of PPI.
table3: other convolutions, and no coarsening. table4: K = C. table5: the number of layers. optimiser: SGD as printed.

Each has the default of the package and GIC.as_printed. Networks have the printed widths and no encoder, ten folds
are tested after every epoch, and features are label and degree. With --measured, tables 3 and 4 are of sets with measured
features instead, all of which are used. Runs are lines of paper/DATASET.jsonl in the output folder, and are not made again.
"""

import os
import subprocess
import sys
from pathlib import Path

from ..common.command import add_run_arguments, make_parser, parse, print_table
from ..common.records import by_network, make_missing
from ..common.statistics import mean_and_spread
from ..graphs.runs import FOLDS, load, make_job, run
from .tables import EPOCHS, MEASURED, PRINTED, PROTOCOLS, TABLES, accuracies

ROOT = Path(__file__).parents[2]
EXAMPLES = {"PPI": ["ppi.py"], "Reddit": ["reddit.py"], "circuits": ["ppi.py", "--dataset", "circuits"]}
RECIPES = ("paper", "modern")
QUICK = {"datasets": ["MUTAG"], "networks": ["GIC", "GIC.as_printed"], "folds": [0, 1], "epochs": 2}


def parse_args():
    parser = make_parser("paper", __doc__)
    parser.add_argument("table", nargs="?", choices=["table2", *TABLES], default="table1", help="(default: %(default)s)")
    parser.add_argument("--datasets", nargs="+", help="(default: all of the table)")
    parser.add_argument("--networks", nargs="+", choices=PRINTED, metavar="NETWORK", help="(default: all of the table)")
    parser.add_argument("--measured", action="store_true", help=f"sets with measured features: {', '.join(MEASURED)}")
    parser.add_argument(
        "--folds", nargs="+", type=int, choices=range(FOLDS), default=list(range(FOLDS)), help="(default: all)"
    )
    parser.add_argument("--epochs", type=int, help="(default: those of the data set, see benchmark/paper/tables.py)")
    add_run_arguments(parser, "GIC and GIC.as_printed on MUTAG, two folds, two epochs")
    return parse(parser, QUICK, "epochs", "jobs")


def run_table(args):
    networks, datasets = TABLES[args.table]
    features, stage = "all" if args.measured else "labels", "sgd" if args.table == "optimiser" else "printed"
    for dataset in args.datasets or (MEASURED if args.measured else datasets):
        load(args.root, args.data_url, dataset, features)
        epochs = args.epochs or (300 if stage == "sgd" else EPOCHS.get(dataset, 30))
        jobs = [
            make_job(dataset, network, stage, {}, epochs, fold, features)
            for fold in args.folds
            for network in args.networks or networks
        ]
        results = make_missing(run, args, jobs, args.output / "paper" / f"{dataset}.jsonl", args.jobs)
        for network, found in by_network(zip(jobs, results, strict=True)).items():
            runs = {job["fold"]: result for job, result in found}
            cells = [mean_and_spread(accuracies(runs, protocol).values()) for protocol in PROTOCOLS]
            yield [dataset, network, *cells, str(len(runs)), str(epochs)]


def result_path(folder, dataset, recipe):
    return folder / "paper" / f"table2-{dataset}-{recipe}.json"


def run_examples(args):
    """Table 2: the examples, each a process that goes on from its checkpoint."""
    for dataset in args.datasets or EXAMPLES:
        for recipe in RECIPES:
            path = result_path(args.output, dataset, recipe)
            if path.exists():
                continue
            script, *options = EXAMPLES[dataset]
            command = [sys.executable, str(ROOT / "examples" / script), *options, "--recipe", recipe, "--root", str(args.root)]
            command += ["--result", str(path), "--checkpoint", str(args.root / f"{path.stem}.pt")]
            if args.data_url:
                command += ["--data-url", args.data_url + ("/circuits" if dataset == "circuits" else "")]
            command += ["--epochs", str(args.epochs)] if args.epochs else []
            print(f"table2, {dataset}, {recipe}", flush=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
            if subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}).returncode != 0:
                print(f"table2, {dataset}, {recipe}: not run")


def main():
    args = parse_args()
    if args.table == "table2":
        run_examples(args)
        return
    rows = list(run_table(args))
    print_table("Accuracy in percent by protocol", ["", "network", *PROTOCOLS, "folds", "epochs"], rows)
    print("\n".join(f"{name}: {text}" for name, text in PROTOCOLS.items()))


if __name__ == "__main__":
    main()
