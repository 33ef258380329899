"""Which convolution classifies nodes best? GICConv beside PNA, GIN, GraphSAGE, GATv2, GMMConv and GCN.

The same network stands around each: an encoder of two layers, convolutions, a linear layer. Each gets the same trials of
learning rate, width, layers and dropout. In each of ten runs all trials are trained, validation nodes choose the trial and its
epoch, and that is what counts. Splits are the published ones, or random ones where there are none. Runs are lines of
nodes/DATASET.jsonl in the output folder, and are not made again.
"""

from ..common.arguments import add_run_arguments, complete, make_parser
from ..common.records import make_missing
from ..common.statistics import mean_and_spread
from ..common.tables import print_table
from ..common.tuning import candidates
from .data import DATASETS, RUNS
from .networks import NETWORKS
from .runs import load, make_job, run

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
    args = parser.parse_args()
    if args.quick:
        vars(args).update(QUICK)
    return complete(parser, args, "trials", "epochs")


def path_of(folder, dataset):
    return folder / "nodes" / f"{dataset}.jsonl"


def chosen(results):
    """Of each network and run, the result of the trial that validation prefers: {network: {run: result}}. The results come as
    pairs with their jobs."""
    best = {}
    for job, result in results:
        runs = best.setdefault(job["network"], {})
        if job["run"] not in runs or result["validation"] > runs[job["run"]]["validation"]:
            runs[job["run"]] = result
    return best


def measure(args, dataset):
    load(args.root, args.data_url, dataset)  # an error ends the command, and not a process of it
    jobs = [
        make_job(dataset, network, settings, args.epochs, number)
        for number in args.runs
        for network in args.networks
        for settings in candidates(args.trials, GRID, DEFAULT)
    ]
    results = make_missing(run, args, jobs, path_of(args.output, dataset), args.jobs)
    made = [(job, result) for job, result in zip(jobs, results, strict=True) if result]
    for network, runs in chosen(made).items():
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
