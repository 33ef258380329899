"""How long does a coarsening take? Forward passes on real batches, beside partitioners called graph by graph."""

import math

import torch
from torch_geometric.data import Batch

from torch_gic import VIGMMPool

from ..common.measure import available_megabytes, median_times, peak_megabytes
from ..common.tables import print_table
from .contenders import (
    DENSE,
    RATIO,
    available,
    graclus,
    metis,
    metis_adjacency,
    metis_parts,
    num_clusters,
    set_threads,
    spectral,
    tgp_pooler,
)
from .cut import load_graphs

GRAPHS, CHANNELS = 100, 64
OURS = "VIGMMPool"
POOLERS = ["mincut", "dmon", "diffpool", "justbalance", "graclus", "ndp", "kmis", "topk"]


def coarsening_calls(graphs):
    """Every contender as a function without arguments, on the same graphs."""
    batch, x = Batch.from_data_list(graphs), torch.randn(sum(graph.num_nodes for graph in graphs), CHANNELS)
    pool = VIGMMPool(CHANNELS, RATIO)
    calls = {OURS: lambda: pool(x, batch.edge_index, None, batch.batch)}
    if available(["metis"]):
        prepared = [(metis_adjacency(graph), num_clusters(graph)) for graph in graphs]
        calls["METIS, bare"] = lambda: [metis_parts(*arguments) for arguments in prepared]
        calls["METIS, with lists"] = lambda: [metis(graph) for graph in graphs]
    if available(["spectral"]):
        calls["spectral"] = lambda: [spectral(graph) for graph in graphs]
    if available(["graclus"]):
        calls["graclus twice"] = lambda: graclus(batch)
    largest, mean = max(graph.num_nodes for graph in graphs), batch.num_nodes / len(graphs)
    for name in available(POOLERS):
        if name not in DENSE or fits(len(graphs), largest):
            pooler = tgp_pooler(name, CHANNELS, math.ceil(RATIO * mean))
            calls[f"tgp {name}"] = forward(pooler, x, batch)
    return calls


def forward(pooler, x, batch):
    return lambda: pooler(x, batch.edge_index, batch=batch.batch)


def fits(num_graphs, largest):
    """Whether dense adjacency matrices, padded to the largest graph, do: some six of them are held at once."""
    return 6 * 4 * num_graphs * largest**2 / 2**20 < available_megabytes()


@torch.no_grad()
def measure_time(args, results, progress):
    def times(graphs):
        return median_times(coarsening_calls(graphs), args.rounds, progress)

    def peaks(graphs):
        return {name: peak_megabytes(call) for name, call in coarsening_calls(graphs).items()}

    for dataset in args.datasets:
        graphs = load_graphs(args, dataset)[:GRAPHS]
        torch.manual_seed(0)
        columns = {}
        for threads in args.threads:
            set_threads(threads)
            progress.set_description(f"time, {dataset}, threads: {threads}, round")
            columns[f"threads: {threads}"] = results.get(f"time/{dataset}/{threads}", times, graphs)
        progress.set_description(f"memory, {dataset}, round")
        memory = results.get(f"time memory/{dataset}", peaks, graphs)
        names = list(memory)
        rows = []
        for name in names:
            cells = [f"{t[name]:.1f} ms {t[name] / t[OURS]:7.2f}x" if name in t else "-" for t in columns.values()]
            rows.append([name, *cells, "-" if memory[name] is None else f"{memory[name]:.1f} MB"])
        nodes, edges = sum(graph.num_nodes for graph in graphs), sum(graph.num_edges for graph in graphs)
        title = f"{dataset}: {len(graphs)} graphs, {nodes} nodes, {edges} edges, {CHANNELS} channels; x: of {OURS}"
        print_table(title, ["forward pass", *columns, "peak memory"], rows)
