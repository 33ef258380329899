"""Does coarsening pay? The test score of the same network with and without it, after equal training time.

graphs: GIN of three layers: alone, with VIGMMPool between its layers, and with random clusters in its place.
nodes: five GCN layers on a whole graph: all on the graph itself, or as a U-Net on what VIGMMPool or random clusters leave.
samples: GraphSAGE of two layers in mini-batches: parts of `torch_gic.loader.ClusterData` beside sampled neighbours, on PubMed
and on a planted graph of Reddit's size.

Time is that of the processor, on one thread: batches, steps and what is prepared ahead, but not the looks at validation data,
which choose the weights. The learning rate falls along a cosine over this time. Few runs only show large differences. They
are lines of worth.jsonl in the output folder, and are not made again.
"""

from ..common.arguments import add_run_arguments, complete, make_parser
from ..common.records import make_missing
from ..common.statistics import mean_and_spread
from ..common.tables import print_table
from . import graphs, nodes, samples

PARTS = {"graphs": graphs, "nodes": nodes, "samples": samples}
QUICK = {"graphs": ["PROTEINS_full"], "nodes": ["Minesweeper"], "samples": ["PubMed"]}
RUNS = {"planted": 1}  # of data sets on which a run takes many minutes


def parse_args():
    parser = make_parser("worth", __doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="(default: all)")
    parser.add_argument("--datasets", nargs="+", metavar="NAME", help="only these (default: all of each part)")
    parser.add_argument("--runs", type=int, default=3, help="folds, splits or seeds (default: %(default)s; planted: 1)")
    parser.add_argument("--seconds", type=float, help="of training (default: 30; planted: 240)")
    add_run_arguments(parser, "a data set of each part, one run, a second")
    args = parser.parse_args()
    if args.seconds is not None and not args.seconds > 0:
        parser.error(f"Expected --seconds to be positive (got {args.seconds})")
    if args.quick:
        args.runs, args.seconds = 1, 1.0
    return complete(parser, args, "runs")


def run(source, job):
    """Trains one network for the seconds of the job, and tests it once."""
    return PARTS[job["part"]].run(source, job)


def measure(args, part):
    module = PARTS[part]
    for dataset in QUICK[part] if args.quick else module.DATASETS:
        if args.datasets and dataset not in args.datasets:
            continue
        seconds = args.seconds or module.DATASETS[dataset]
        jobs = [
            {"part": part, "dataset": dataset, "network": network, "seconds": seconds, "run": number}
            for number in range(min(args.runs, RUNS.get(dataset, args.runs)))
            for network in module.NETWORKS
        ]
        results = make_missing(run, args, jobs, args.output / "worth.jsonl", args.jobs)
        for network in module.NETWORKS:
            found = [result for job, result in zip(jobs, results, strict=True) if result and job["network"] == network]
            if found:
                score = mean_and_spread([100 * result["test"] for result in found])
                ahead, steps = (sum(result[key] for result in found) / len(found) for key in ("ahead", "steps"))
                yield [dataset, network, score, found[0]["metric"], str(len(found)), *cells(seconds, ahead, steps)]


def cells(seconds, ahead, steps):
    return f"{seconds:.0f} s", f"{ahead:.1f} s", f"{steps:.0f}"


def main():
    args = parse_args()
    rows = [row for part in args.parts for row in measure(args, part)]
    columns = ["", "network", "test", "metric", "runs", "time", "of it ahead", "steps"]
    print_table("Percent after equal training time: mean and standard deviation over the runs", columns, rows)


if __name__ == "__main__":
    main()
