"""What does a coarsening cost? Time and memory on real batches, and their growth with a grid and a power-law graph.

Each measurement of growth is a process of its own (`python -m benchmark.pooling.cost graph contender nodes threads`), so that
its highest memory is its own, and it can be stopped.
"""

import argparse
import json
import math
import platform
import statistics
import subprocess
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import torch
from torch_geometric.data import Batch

from torch_gic import VIGMMPool

from ..common.command import print_table
from ..common.data import grid, power_law
from ..common.measure import available_megabytes, exponent, median_times, peak_megabytes
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
from .quality import load_graphs, normalised_cut

BATCH, BATCH_CHANNELS = 100, 64  # graphs of a batch
OURS = "VIGMMPool"
POOLERS = ["mincut", "dmon", "diffpool", "justbalance", "graclus", "ndp", "kmis", "topk"]
CHANNELS = 8  # of growth
LARGEST = {"spectral": 10**4, "mincut": 10**4}  # eigenvectors and dense matrices
CONTENDERS = ["vigmm", "metis", "graclus", "spectral", "kmis", "topk", "mincut"]
REPEATS, SHORT = 5, 1.0  # calls are repeated while they take less than this many seconds in all
GRAPHS = {"grid": grid, "power law": power_law}


def coarsening_calls(graphs):
    """Every contender as a function without arguments, on the same graphs."""
    batch, x = Batch.from_data_list(graphs), torch.randn(sum(graph.num_nodes for graph in graphs), BATCH_CHANNELS)
    pool = VIGMMPool(BATCH_CHANNELS, RATIO)
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
            pooler = tgp_pooler(name, BATCH_CHANNELS, math.ceil(RATIO * mean))
            calls[f"tgp {name}"] = partial(pooler, x, batch.edge_index, batch=batch.batch)
    return calls


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
        graphs = load_graphs(args, dataset)[:BATCH]
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
        title = f"{dataset}: {len(graphs)} graphs, {nodes} nodes, {edges} edges, {BATCH_CHANNELS} channels; x: of {OURS}"
        print_table(title, ["forward pass", *columns, "peak memory"], rows)


def coarsening_call(name, graph):
    """A function without arguments; its result, where there is one, is the partition."""
    x, edge_index, count = torch.randn(graph.num_nodes, CHANNELS), graph.edge_index, num_clusters(graph)
    if name == "vigmm":
        pool = VIGMMPool(None, RATIO)
        return lambda: pool(x, edge_index).select.cluster_index
    if name == "metis":
        adjacency = metis_adjacency(graph)
        return lambda: torch.tensor(metis_parts(adjacency, count))
    if name in ("graclus", "spectral"):
        return lambda: {"graclus": graclus, "spectral": spectral}[name](graph)
    batch, pooler = torch.zeros(graph.num_nodes, dtype=torch.long), tgp_pooler(name, CHANNELS, count)
    if name == "kmis":
        return lambda: pooler(x, edge_index, batch=batch).so.cluster_index
    return lambda: pooler(x, edge_index, batch=batch) and None


@torch.no_grad()
def measure_here(kind, name, num_nodes):
    """Median time in milliseconds without the first call, peak memory in MB, cut."""

    def call():
        nonlocal cluster
        cluster = None
        start = time.perf_counter()
        cluster = coarsen()
        seconds.append(time.perf_counter() - start)

    seconds, cluster = [], None
    graph = GRAPHS[kind](num_nodes)
    coarsen = coarsening_call(name, graph)
    memory = peak_megabytes(call)
    while len(seconds) < 2 or (len(seconds) <= REPEATS and sum(seconds) < SHORT):
        call()
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges // 2,
        "time": 1000 * statistics.median(seconds[1:]),
        "memory": memory,
        "cut": None if cluster is None else normalised_cut(graph, cluster),
    }


def measure_apart(kind, name, num_nodes, threads, limit):
    """The same in a process of its own, or why there is nothing."""
    command = [sys.executable, "-m", "benchmark.pooling.cost", kind, name, str(num_nodes), str(threads)]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {limit} s"}
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    return {"failed": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"signal {-done.returncode}"}


def measure_growth(args, results, progress):
    points = {}
    for kind in GRAPHS:
        for name in available(CONTENDERS):
            for n in (n for n in args.nodes if n <= LARGEST.get(name, n)):
                progress.set_description(f"growth, {kind}, {name}, {n} nodes; measurement")
                key = f"growth/{kind}/{name}/{n}"
                point = results.get(key, measure_apart, kind, name, n, args.threads[-1], args.time_limit)
                progress.update()
                if "failed" in point:
                    print(f"{kind}, {name}, {n} nodes: {point['failed']}")
                    break  # a larger graph will not do what this one did not
                points[kind, name, n] = point
    for quantity, unit in (("time", "ms"), ("memory", "MB"), ("cut", "")):
        title = f"Growth of {quantity}{f' [{unit}]' if unit else ''}, threads: {args.threads[-1]}"
        print_growth(title, quantity, points, args.nodes)


def print_growth(title, quantity, points, sizes):
    rows = []
    for kind, name in dict.fromkeys(key[:2] for key in points):
        line = [points.get((kind, name, n), {}) for n in sizes]
        cells = [number(point.get(quantity)) for point in line]
        if quantity != "cut":
            cells.append(growth([point for point in line if point and point["nodes"] > 500], quantity))
        rows.append([f"{kind}, {name}", *cells])
    print_table(title, ["nodes", *map(str, sizes), *(["exponent"] if quantity != "cut" else [])], rows)


def number(value):
    return "-" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def growth(points, quantity):
    """The exponent, and from where to where. Less than a megabyte of memory is noise."""
    points = [point for point in points if point[quantity] is not None and (quantity != "memory" or point[quantity] > 1)]
    if len(points) < 2:
        return "-"
    size = [point["nodes"] for point in points]
    return f"{exponent(size, [point[quantity] for point in points]):.2f} ({min(size)} to {max(size)})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("graph", choices=GRAPHS)
    parser.add_argument("contender", choices=CONTENDERS)
    parser.add_argument("nodes", type=int)
    parser.add_argument("threads", type=int)
    args = parser.parse_args()
    if platform.system() == "Linux":
        import resource

        limit = int(0.9 * available_megabytes() * 2**20)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))  # an error here, instead of a machine without memory
    warnings.filterwarnings("ignore", message="Sparse")
    set_threads(args.threads)
    torch.manual_seed(0)
    print(json.dumps(measure_here(args.graph, args.contender, args.nodes)))


if __name__ == "__main__":
    main()
