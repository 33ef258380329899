"""Which network classifies graphs best? GIC and its variants beside PNA, GIN, GraphSAGE, GATv2, GMMConv and GCN.

All stand behind the same two-layer encoder, or without it take the features as they are. Each gets the same trials of learning
rate, width, layers and dropout. The trials are judged by the graphs of the last of ten folds, which is never tested. The best
settings are then trained on each of the other folds, and tested once at the epoch that validation graphs chose. Molecules have
one scaffold split: their folds are seeds. Runs are lines of graphs/DATASET.jsonl in the output folder, and are not made again.
"""

from ..common.command import add_run_arguments, make_parser, parse, print_table
from ..common.records import by_network, make_missing
from ..common.statistics import mean_and_spread
from ..common.training import best, candidates
from .data import FEATURES
from .networks import NETWORKS
from .runs import FOLDS, TUNING, load, make_job, run

QUICK = {"datasets": ["MUTAG"], "networks": ["GIC", "GIN"], "trials": 2, "folds": [0, 1], "epochs": 2}


def parse_args():
    parser = make_parser("graphs", __doc__)
    folds = [fold for fold in range(FOLDS) if fold != TUNING]

    def add(name, text, **options):
        parser.add_argument(name, help=f"{text} (default: %(default)s)", **options)

    add("--datasets", "names in the TU collection or of MoleculeNet", nargs="+", default=["Letter-high"])
    networks = ["GIC", "GIC, C = 1", "PNA", "GIN"]
    parser.add_argument(
        "--networks",
        nargs="+",
        choices=NETWORKS,
        metavar="NETWORK",
        default=networks,
        help=f"of: {'; '.join(NETWORKS)} (default: {'; '.join(networks)})",
    )
    add("--features", "; ".join(f"{name}: {text}" for name, text in FEATURES.items()), choices=FEATURES, default="all")
    parser.add_argument("--no-encoder", dest="encoder", action="store_false", help="the features go to the convolutions")
    add("--trials", "settings to try; 1: the default ones, and no trial is run", type=int, default=4)
    add("--folds", "to test", nargs="+", type=int, choices=folds, default=folds)
    add("--epochs", "of each run and trial", type=int, default=30)
    add_run_arguments(parser, "two networks on MUTAG, two trials, two folds, two epochs")
    return parse(parser, QUICK, "trials", "epochs", "jobs")


def measure(args, dataset):
    """A row for each network. All networks are tuned before any is tested, and take turns fold by fold: what is there of a
    command that is stopped is comparable."""
    load(args.root, args.data_url, dataset, args.features)  # an error ends the command, and not a process of it
    path, settings = args.output / "graphs" / f"{dataset}.jsonl", candidates(args.trials)
    inputs = args.features, args.encoder
    chosen = dict.fromkeys(args.networks, settings[0])
    if args.trials > 1:
        for network in args.networks:
            jobs = [make_job(dataset, network, "trial", own, args.epochs, TUNING, *inputs) for own in settings]
            chosen[network] = best(settings, make_missing(run, args, jobs, path, args.jobs))
    jobs = [
        make_job(dataset, network, "test", own, args.epochs, fold, *inputs)
        for fold in args.folds
        for network, own in chosen.items()
        if own is not None
    ]
    results = make_missing(run, args, jobs, path, args.jobs)
    for network, found in by_network(zip(jobs, results, strict=True)).items():
        first, results = found[0][1], [result for _, result in found]
        scale = 1 if first["metric"] == "RMSE" else 100
        cells = mean_and_spread([abs(scale * result["test"]) for result in results]), first["metric"], len(results)
        seconds = min(result["seconds"] for result in results)
        yield [dataset, network, *map(str, cells), f"{seconds:.2f}", str(first["parameters"]), str(chosen[network])]


def main():
    args = parse_args()
    rows = [row for dataset in args.datasets for row in measure(args, dataset)]
    columns = ["", "network", "test", "metric", "folds", "s / epoch", "parameters", "settings"]
    print_table("Mean and standard deviation over the folds", columns, rows)


if __name__ == "__main__":
    main()
