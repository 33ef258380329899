"""Why may a worse cut classify better? How far fields reach after coarsening, and how much of the features clusters hide."""

import torch
from torch_geometric.loader import DataLoader
from torch_geometric.utils import degree, scatter

from torch_gic import receptive_fields

from ..common.data import load_tu
from ..common.tables import print_table
from .contenders import available
from .select import POOLERS

RATIO, LEVELS, BATCH = 0.5, 2, 100
SCALES = 3  # of the fields
SHOWN = {"frozen": "VIGMMPool, h constant", "metis": "METIS", "random": "random"}


def reach(edge_index, size, batch):
    """The share of the nodes of its graph that the field of a node covers, mean over all."""
    neighbor, node = receptive_fields(edge_index, num_nodes=size.numel(), num_scales=SCALES).index
    covered = scatter(size[neighbor], node, dim_size=size.numel(), reduce="sum")
    return float((covered / scatter(size, batch, reduce="sum")[batch]).mean())


def smooth(x, edge_index):
    """The mean over the neighbours and the node itself: about what a convolution has seen."""
    total = x.index_add(0, edge_index[1], x[edge_index[0]])
    return total / (1 + degree(edge_index[1], x.size(0))).unsqueeze(1)


def within(x, cluster, batch):
    """The share of the variance inside graphs that is inside clusters."""

    def squares(groups):
        return float((x - scatter(x, groups, reduce="mean")[groups]).square().sum())

    return squares(cluster) / squares(batch)


def measure_levels(batches, pooler):
    """Mean over the batches: the reach of each level, and the hidden share of the first coarsening."""
    torch.manual_seed(0)
    rows = []
    for data in batches:
        pools = [POOLERS[pooler](None, RATIO, None) for _ in range(LEVELS)]
        x, edges, weight, batch = data.x, data.edge_index, None, data.batch
        size, row = torch.ones(data.num_nodes), []
        for level, pool in enumerate(pools):
            row.append(reach(edges, size, batch))
            x, edges, weight, coarse_batch, select = pool(x, edges, weight, batch)
            if level == 0:
                row.append(within(smooth(data.x, data.edge_index), select.cluster_index, batch))
            size, batch = scatter(size, select.cluster_index, dim_size=x.size(0), reduce="sum"), coarse_batch
        rows.append([*row, reach(edges, size, batch)])
    return torch.tensor(rows).mean(dim=0).tolist()


def measure_reach(args, results, progress):
    def levels(name, pooler):
        graphs = []
        for graph in load_tu(args, name):
            if graph.x is None:
                graph.x = degree(graph.edge_index[1], graph.num_nodes).unsqueeze(1)
            graphs.append(graph)
        return measure_levels(DataLoader(graphs, batch_size=BATCH), pooler)

    rows = []
    for name in args.datasets:
        for pooler in available(SHOWN):
            label = SHOWN[pooler]
            progress.set_description(f"reach, {name}, {label}")
            first, hidden, second, third = results.get(f"reach/{name}/{pooler}", levels, name, pooler)
            rows.append([name, label, *(f"{value:.2f}" for value in (first, second, third, hidden))])
    columns = ["", "", "fine", f"at {RATIO}", f"at {RATIO**2}", "hidden"]
    print_table(f"Share of its graph that a field of K = {SCALES} covers, by level", columns, rows)
    print("hidden: share of the variance of features, averaged over neighbours, that is inside clusters of the first level")
