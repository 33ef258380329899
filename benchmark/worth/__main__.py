"""Does coarsening pay? The test score of the same network with and without it, after equal training time.

graphs: GIN of three layers: alone, with VIGMMPool between its layers, and with random clusters in its place.
nodes: five GCN layers on a whole graph: all on the graph itself, or as a U-Net on what VIGMMPool or random clusters leave.
samples: GraphSAGE of two layers in mini-batches: parts of `torch_gic.loader.ClusterData` beside sampled neighbours, on PubMed
and on a planted graph of Reddit's size.

Time is that of the processor, on one thread: batches, steps and what is prepared ahead, but not the looks at validation data,
which choose the weights. The learning rate falls along a cosine over this time. Few runs only show large differences. They
are lines of worth.jsonl in the output folder, and are not made again.
"""

from ..common.command import add_run_arguments, make_parser, parse, print_table
from ..common.records import by_network, make_missing
from ..common.statistics import mean_and_spread
from .parts import PARTS, run

QUICK = {"graphs": ["PROTEINS_full"], "nodes": ["Minesweeper"], "samples": ["PubMed"]}
RUNS = {"planted": 1}  # of data sets on which a run takes many minutes


def parse_args():
    parser = make_parser("worth", __doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="(default: all)")
    parser.add_argument("--datasets", nargs="+", metavar="NAME", help="only these (default: all of each part)")
    parser.add_argument("--runs", type=int, default=3, help="folds, splits or seeds (default: %(default)s; planted: 1)")
    parser.add_argument("--seconds", type=float, help="of training (default: 30; planted: 240)")
    add_run_arguments(parser, "a data set of each part, one run, a second")
    args = parse(parser, {"runs": 1, "seconds": 1.0}, "runs", "jobs")
    if args.seconds is not None and not args.seconds > 0:
        parser.error(f"Expected --seconds to be positive (got {args.seconds})")
    return args


def measure(args, part):
    for dataset in QUICK[part] if args.quick else PARTS[part].datasets:
        if args.datasets and dataset not in args.datasets:
            continue
        seconds = args.seconds or PARTS[part].datasets[dataset]
        jobs = [
            {"part": part, "dataset": dataset, "network": network, "seconds": seconds, "run": number}
            for number in range(min(args.runs, RUNS.get(dataset, args.runs)))
            for network in PARTS[part].networks
        ]
        made = make_missing(run, args, jobs, args.output / "worth.jsonl", args.jobs)
        for network, found in by_network(zip(jobs, made, strict=True)).items():
            results = [result for _, result in found]
            score = mean_and_spread([100 * result["test"] for result in results])
            ahead, steps = (sum(result[key] for result in results) / len(results) for key in ("ahead", "steps"))
            cells = results[0]["metric"], str(len(results)), f"{seconds:.0f} s", f"{ahead:.1f} s", f"{steps:.0f}"
            yield [dataset, network, score, *cells]


def main():
    args = parse_args()
    rows = [row for part in args.parts for row in measure(args, part)]
    columns = ["", "network", "test", "metric", "runs", "time", "of it ahead", "steps"]
    print_table("Percent after equal training time: mean and standard deviation over the runs", columns, rows)


if __name__ == "__main__":
    main()
