"""Parts of nearly equal size: `torch_gic.cluster(..., max_size=...)` beside METIS at the same bound.

Prints the edges between parts and the time of both, on a grid, a power-law graph, PubMed and Amazon's photos. The largest part
has at most 1.1 times the mean number of nodes. Needs pymetis.
"""

import statistics
import time

import torch
from torch_geometric.utils import coalesce, remove_self_loops

from torch_gic import cluster

from ..common.command import add_data_arguments, make_parser, parse, print_table
from ..common.data import grid, loading, power_law
from .contenders import available

IMBALANCE = 1.1
KINDS = {"PubMed": "Planetoid", "Photo": "Amazon"}  # the classes of PyG
GRAPHS = ["grid", "power law", *KINDS]
COLUMNS = ["", "nodes", "edges", "parts", "METIS cuts", "ours", "more", "METIS's time", "ours", "100 iterations", "time"]


def load(name, args):
    """The edges of a graph in both directions, each once, and its number of nodes."""
    if name in KINDS:
        with loading(args, KINDS[name], name) as dataset:
            data = dataset(args.root / KINDS[name], name)[0]
    else:
        data = (grid if name == "grid" else power_law)(args.nodes)
    edges = torch.cat([data.edge_index, data.edge_index.flip(0)], dim=1)
    return coalesce(remove_self_loops(edges)[0], num_nodes=data.num_nodes), data.num_nodes


def metis(edge_index, num_nodes, num_parts):
    import pymetis

    rowptr = torch.searchsorted(edge_index[0], torch.arange(num_nodes + 1)).numpy()
    adjacency = pymetis.CSRAdjacency(rowptr, edge_index[1].numpy())
    options = pymetis.Options(ufactor=round(1000 * (IMBALANCE - 1)))
    return torch.tensor(pymetis.part_graph(num_parts, adjacency=adjacency, options=options, recursive=False)[1])


def timed(function, rounds):
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        parts = function()
        seconds.append(time.perf_counter() - start)
    return parts, statistics.median(seconds)


def compare(name, args):
    edge_index, num_nodes = load(name, args)
    bound = int(IMBALANCE * num_nodes / args.parts)

    def ours(iterations):
        return cluster(edge_index, args.parts, max_size=bound, num_nodes=num_nodes, num_iterations=iterations)

    calls = [lambda: metis(edge_index, num_nodes, args.parts), lambda: ours(20), lambda: ours(100)]
    found = [timed(call, args.rounds) for call in calls]
    for parts, _ in found:
        assert int(torch.bincount(parts).max()) <= bound, f"a part of {name} has more than {bound} nodes"
    cuts = [int((parts[edge_index[0]] != parts[edge_index[1]]).sum()) // 2 for parts, _ in found]
    (_, theirs), (_, short), (_, long) = found
    more = [f"{100 * (cut / cuts[0] - 1):+.0f} %" for cut in cuts]
    counts = [str(value) for value in (num_nodes, edge_index.size(1) // 2, args.parts, *cuts[:2])]
    return [name, *counts, more[1], f"{theirs:.2f} s", f"{short / theirs:.1f} x", more[2], f"{long / theirs:.1f} x"]


def main():
    parser = make_parser("pooling.parts", __doc__)
    parser.add_argument("--graphs", nargs="+", choices=GRAPHS, default=GRAPHS, help="(default: all)")
    parser.add_argument("--nodes", type=int, default=10_000, help="of the grid and the power law (default: %(default)s)")
    parser.add_argument("--parts", type=int, default=100, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="of which the median time counts (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="to see that it works: one round, the grid and the power law")
    add_data_arguments(parser)
    args = parse(parser, {"graphs": GRAPHS[:2], "rounds": 1, "nodes": 2500}, "nodes", "parts", "rounds", "threads")
    if not available(["metis"]):
        raise SystemExit("This benchmark needs pymetis: pip install pymetis")
    torch.set_num_threads(args.threads)
    rows = [compare(name, args) for name in args.graphs]
    print_table(f"Parts of at most {IMBALANCE} times the mean size", COLUMNS, rows)


if __name__ == "__main__":
    main()
