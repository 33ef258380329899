"""How good and how fast is the coarsening of VIGMMPool? One command, tables, a plot.

It measures the normalised cut beside partitioners and other poolers, all with a quarter of the nodes as clusters. Further
parts are the time of a forward pass on real batches, and growth of time, memory and cut to graphs of a million nodes. The
last ones are how far fields reach after coarsening, and how sharp the mixture must be. Methods in a table of times take turns
in the same rounds, and their medians are compared.

What has been measured is kept in the output folder, and a run that was stopped goes on from there. Contenders need pymetis,
scikit-learn, torch-geometric-pool and torch-cluster, and are left out without them.
"""

import warnings

from tqdm import tqdm

import torch_gic

from ..common.command import add_data_arguments, add_output_arguments, make_parser, parse
from ..common.measure import Results
from .contenders import print_missing, versions
from .cost import measure_growth, measure_time
from .plot import plot
from .quality import measure_cut, measure_precision, measure_reach

QUICK = {"datasets": ["MUTAG"], "parts": ["cut", "time", "precision"], "threads": [1], "rounds": 1}
QUICK |= {"cut_nodes": 500, "trained_graphs": 1}
DATASETS = ["MUTAG", "ENZYMES", "PROTEINS", "NCI1", "IMDB-BINARY", "REDDIT-BINARY"]
PARTS = {
    "cut": measure_cut,
    "time": measure_time,
    "growth": measure_growth,
    "reach": measure_reach,
    "precision": measure_precision,
}


def parse_args():
    parser = make_parser("pooling", __doc__)
    parser.add_argument("--datasets", nargs="+", default=DATASETS, help="names in the TU collection (default: %(default)s)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="what to measure (default: all)")
    parser.add_argument(
        "--threads", nargs="+", type=int, default=[1, 2], help="of times; cut, growth: the last (default: 1 2)"
    )
    parser.add_argument("--rounds", type=int, default=9, help="of times (default: 9)")
    parser.add_argument(
        "--cut-nodes", type=int, default=50000, help="of a data set to cut, the same graphs for all (default: 50000)"
    )
    parser.add_argument("--trained-graphs", type=int, default=10, help="graphs to fit the trained ones to (default: 10)")
    parser.add_argument(
        "--nodes", nargs="+", type=int, default=[10**e for e in range(2, 7)], help="of growth (default: 100 to a million)"
    )
    parser.add_argument("--time-limit", type=int, default=120, help="seconds for one measurement of growth (default: 120)")
    add_output_arguments(parser, "cut, time and precision on a few graphs", "pooling.json and pooling.png")
    add_data_arguments(parser)
    return parse(parser, QUICK, "rounds", "trained_graphs", "cut_nodes")


def main():
    args = parse_args()
    warnings.filterwarnings("ignore", message="Sparse")  # "in beta", and "invariant checks", says tgp's every step
    settings = {name: getattr(args, name) for name in ("rounds", "cut_nodes", "trained_graphs", "time_limit")}
    results = Results(args.output / "pooling.json", torch_gic=torch_gic.__version__, **versions(), **settings)
    print(", ".join(f"{key} {value}" for key, value in results.values["made by"].items()))
    print(torch_gic.backend_info())
    print_missing()
    with tqdm(bar_format="{desc} {n}, {elapsed}") as progress:
        for part in args.parts:
            PARTS[part](args, results, progress)
    print(
        "\ncut: mean over the clusters in use of the share of their edge ends that lead outside; clusters asked for: a quarter"
        "\nof the nodes, rounded up. METIS: recursive bisection, bare with its lists of neighbours at hand, with lists with"
        "\ntheir preparation. graclus: two matchings, tgp graclus one. mincut, dmon, diffpool, justbalance: for cuts fitted to"
        "\neach graph by their own losses. topk drops nodes: no partition. ms: median; -: nothing to measure, too long or"
        "\ntoo large. Exponents: least squares of logarithms from 1000 nodes on, of memory above 1 MB."
    )
    plot(results.values, args.output / "pooling.png")
    print(f"Measurements: {results.path}, plot: {args.output / 'pooling.png'}")


if __name__ == "__main__":
    main()
