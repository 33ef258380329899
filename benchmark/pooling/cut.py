"""How much do clusters cut? The normalised cut of every contender on whole data sets."""

import itertools
import statistics

import torch
from torch_geometric.utils import coalesce, to_undirected

from ..common.data import load_tu
from ..common.tables import print_table
from .contenders import OWN_COUNT, PARTITIONS, TRAINED, available, num_clusters, set_threads


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
