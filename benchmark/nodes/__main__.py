"""Which convolution classifies nodes best? GICConv beside PNA, GIN, GraphSAGE, GATv2, GMMConv and GCN.

The same network stands around each: an encoder of two layers, convolutions, a linear layer. Each gets the same trials of
learning rate, width, layers and dropout. In each of ten runs all trials are trained, validation nodes choose the trial and its
epoch, and that is what counts. Splits are the published ones, or random ones where there are none. Runs are lines of
nodes/DATASET.jsonl in the output folder, and are not made again.
"""

from ..common.command import add_run_arguments, make_parser, parse, print_table
from ..common.records import by_network, make_missing
from ..common.statistics import mean_and_spread
from ..common.training import candidates
from .runs import DATASETS, NETWORKS, RUNS, best_trials, load, make_job, run

GRID = {"lr": [3e-3, 1e-2], "width": [32, 64], "layers": [1, 2, 3], "dropout": [0.2, 0.5, 0.8]}
DEFAULT = {"lr": 1e-2, "width": 64, "layers": 2, "dropout": 0.5}
QUICK = {"datasets": ["Cora"], "networks": ["GICConv", "GCN"], "trials": 1, "runs": [0, 1], "epochs": 5}


def parse_args():
    parser = make_parser("nodes", __doc__)
    parser.add_argument(
        "--datasets",
        nargs="+",
        choices=DATASETS,
        default=["Cora", "CiteSeer", "PubMed"],
        help="(default: Cora CiteSeer PubMed)",
    )
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS), help="(default: all)")
    parser.add_argument("--trials", type=int, default=3, help="settings to try in each run (default: %(default)s)")
    parser.add_argument("--runs", nargs="+", type=int, choices=range(RUNS), default=list(range(RUNS)), help="(default: all)")
    parser.add_argument("--epochs", type=int, default=100, help="of each trial (default: %(default)s)")
    add_run_arguments(parser, "two networks on Cora, one trial, two runs, five epochs")
    return parse(parser, QUICK, "trials", "epochs", "jobs")


def measure(args, dataset):
    load(args.root, args.data_url, dataset)  # an error ends the command, and not a process of it
    jobs = [
        make_job(dataset, network, settings, args.epochs, number)
        for number in args.runs
        for network in args.networks
        for settings in candidates(args.trials, GRID, DEFAULT)
    ]
    results = make_missing(run, args, jobs, args.output / "nodes" / f"{dataset}.jsonl", args.jobs)
    for network, found in by_network(zip(jobs, results, strict=True)).items():
        runs = best_trials(found)
        score = mean_and_spread([100 * result["test"] for result in runs.values()])
        seconds, first = min(result["seconds"] for result in runs.values()), next(iter(runs.values()))
        yield [dataset, network, score, first["metric"], str(len(runs)), f"{seconds:.3f}", str(first["parameters"])]


def main():
    args = parse_args()
    rows = [row for dataset in args.datasets for row in measure(args, dataset)]
    columns = ["", "network", "test", "metric", "runs", "s / epoch", "parameters"]
    print_table("Percent: mean and standard deviation over the runs", columns, rows)


if __name__ == "__main__":
    main()
