"""What are the clusters worth? How much they cut, how sharp the mixture must be, and how far fields reach after coarsening."""

import itertools
import math
import statistics

import torch
from torch_geometric.loader import DataLoader
from torch_geometric.utils import coalesce, degree, scatter, to_undirected

from torch_gic import receptive_fields
from torch_gic.coarsening import coarsen, responsibility
from torch_gic.coarsening.soft import cut_affinity, soft_em
from torch_gic.coarsening.soft.select import SHARPNESS, precisions
from torch_gic.nn.pool.vigmm_select import GRADIENT_SHARPNESS

from ..common.command import print_table
from ..common.data import load_tu
from .contenders import OWN_COUNT, PARTITIONS, TRAINED, available, num_clusters, set_threads
from .select import POOLERS

PRECISIONS = (0.25, 1, 4, 16, 64)  # multiples of the mean cluster size
NODES, ITERATIONS, SURE = 10000, 20, 0.9
RATIO, LEVELS, BATCH = 0.5, 2, 100  # of the reach
SCALES = 3  # of its fields
SHOWN = {"frozen": "VIGMMPool, h constant", "metis": "METIS", "random": "random"}


def load_graphs(args, name):
    """The graphs in an order by a fixed seed, so that the first of them are the same sample for everyone."""
    dataset = load_tu(args, name)
    order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(0)).tolist()
    graphs = []
    for i in order:
        graph = dataset[i]
        graph.edge_index = to_undirected(coalesce(graph.edge_index), num_nodes=graph.num_nodes)
        graphs.append(graph)
    return graphs


def first_graphs(graphs, num_nodes):
    """As many as have this many nodes together: spectral clustering of large graphs takes seconds each."""
    total = itertools.accumulate(graph.num_nodes for graph in graphs)
    return [graph for graph, count in zip(graphs, total, strict=True) if count <= num_nodes] or graphs[:1]


def normalised_cut(graph, cluster):
    """The mean over the clusters in use of cut(c) / vol(c), the share of its edge ends that lead outside.

    A cluster of isolated nodes cuts nothing.
    """
    used, cluster = cluster.unique(return_inverse=True)
    row, col = cluster[graph.edge_index]
    volume = torch.bincount(row, minlength=used.numel()).double()
    cut = torch.bincount(row[row != col], minlength=used.numel()).double()
    return (cut / volume.clamp(min=1)).mean().item()


def quality(graph, cluster):
    """Normalised cut, clusters in use / clusters asked for, and largest cluster / the n / C nodes of an ideal one."""
    asked, sizes = num_clusters(graph), cluster.unique(return_counts=True)[1]
    return {
        "cut": normalised_cut(graph, cluster),
        "used": sizes.numel() / asked,
        "largest": sizes.max().item() * asked / graph.num_nodes,
    }


def measure_cut(args, results, progress):
    def qualities(dataset, name):
        """Means over all graphs, and over the sample on which the trained ones are fitted."""
        chosen, measured = first_graphs(graphs(dataset), args.cut_nodes), []
        for i, graph in enumerate(chosen[: args.trained_graphs] if name in TRAINED else chosen):
            torch.manual_seed(i)
            measured.append(quality(graph, PARTITIONS[name](graph)))
            progress.update()
        sample = means(measured[: args.trained_graphs])
        return {"sample": sample} if name in TRAINED else {"all": means(measured), "sample": sample}

    def graphs(dataset):
        if dataset not in loaded:
            loaded.clear()
            loaded[dataset] = load_graphs(args, dataset)
        return loaded[dataset]

    loaded, rows = {}, {"all": [], "sample": []}
    set_threads(args.threads[-1])
    for dataset in args.datasets:
        for name in available(PARTITIONS):
            progress.set_description(f"cut, {dataset}, {name}:")
            measured = results.get(f"cut/{dataset}/{name}", qualities, dataset, name)
            for which, values in measured.items():
                rows[which].append((dataset, name, values))
    print_quality("Normalised cut, mean over the graphs", rows["all"], args.datasets)
    print_quality("The same on the graphs to which the trained contenders were fitted", rows["sample"], args.datasets)


def means(measured):
    result = {key: statistics.fmean(values[key] for values in measured) for key in measured[0]}
    return {"graphs": len(measured), **result}


def print_quality(title, rows, datasets):
    """A line for each method; in a cell cut, clusters used of those asked for, and largest cluster."""
    cells = {(dataset, name): values for dataset, name, values in rows}
    names = list(dict.fromkeys(name for _, name, _ in rows))
    lines = []
    for name in names:
        line = [f"{name} *" if name in OWN_COUNT else name]
        for dataset in datasets:
            v = cells[dataset, name]
            line.append(f"{v['cut']:.3f} {100 * v['used']:4.0f} % {v['largest']:5.1f}")
        lines.append(line)
    counts = {dataset: cells[dataset, names[0]]["graphs"] for dataset in datasets}
    columns = ["", *(f"{dataset} ({counts[dataset]} graphs)" for dataset in datasets)]
    print_table(f"{title}; clusters used / asked for; largest cluster / ideal. *: own number of clusters", columns, lines)


def soften(data, sharpness):
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
        measured = [soften(graph, sharpness) for graph in graphs]
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
