"""How sharp must the mixture be? What soft EM alone makes of its start, and how sure responsibilities are, by precision."""

import math

import torch

from torch_gic.coarsening import coarsen, responsibility
from torch_gic.coarsening.soft import cut_affinity, soft_em
from torch_gic.coarsening.soft.select import SHARPNESS, precisions
from torch_gic.nn.pool.vigmm_select import GRADIENT_SHARPNESS

from ..common.tables import print_table
from .contenders import num_clusters, set_threads
from .cut import first_graphs, load_graphs, normalised_cut

PRECISIONS = (0.25, 1, 4, 16, 64)  # multiples of the mean cluster size
NODES, ITERATIONS, SURE = 10000, 20, 0.9


def measure(data, sharpness):
    """The cut of the start, that after soft EM without any moves, and the share of nodes whose cluster is responsible for
    them by more than SURE at the start."""
    count, n = num_clusters(data), data.num_nodes
    batch, influence = torch.zeros(n, dtype=torch.long), torch.ones(n, dtype=torch.float64)
    found = coarsen(data.edge_index, None, influence, batch, 1, count, num_iterations=0)
    beta, start = precisions(found, None, sharpness), found.cluster
    affinity = cut_affinity(found.graph, found.node_weight, batch, 1)
    end = soft_em(affinity, *found[3:], beta, start, ITERATIONS)
    sure = responsibility(found.graph, found.node_weight, found.ptr, found.offset, start, beta) > SURE
    return [normalised_cut(data, start), normalised_cut(data, end), float(sure.double().mean())]


def measure_precision(args, results, progress):
    def mean(dataset, sharpness):
        graphs = [graph for graph in first_graphs(load_graphs(args, dataset), NODES) if graph.num_edges > 0]
        measured = [measure(graph, sharpness) for graph in graphs]
        return [math.fsum(values) / len(graphs) for values in zip(*measured, strict=True)]

    set_threads(args.threads[-1])
    rows = []
    for dataset in args.datasets:
        row = [dataset]
        for sharpness in PRECISIONS:
            progress.set_description(f"precision, {dataset}, {sharpness}")
            start, end, sure = results.get(f"precision/{dataset}/{sharpness}", mean, dataset, sharpness)
            row.append(f"{end:.3f} {100 * sure:3.0f} %")
        rows.append([row[0], f"{start:.3f}", *row[1:]])
    title = f"Cut after soft EM without moves; nodes whose own cluster is responsible by more than {SURE}"
    print_table(f"{title}; by precision / mean cluster size", ["", "start", *map(str, PRECISIONS)], rows)
    print(f"VIGMMPool takes {SHARPNESS} for soft EM, and {GRADIENT_SHARPNESS} for the gradient of the influence")
