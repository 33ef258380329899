"""How do time, memory and cut grow with the graph? One grid and one power-law graph, up to a million nodes.

Each measurement is a process of its own (`python -m benchmark.pooling.growth graph contender nodes threads`), so that
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
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from torch_gic import VIGMMPool

from ..common.measure import available_megabytes, exponent, peak_megabytes
from ..common.tables import print_table
from .contenders import (
    RATIO,
    available,
    graclus,
    metis_adjacency,
    metis_parts,
    num_clusters,
    set_threads,
    spectral,
    tgp_pooler,
)
from .cut import normalised_cut

CHANNELS = 8
EDGES = 4  # of a new node of the power-law graph
LARGEST = {"spectral": 10**4, "mincut": 10**4}  # eigenvectors and dense matrices
CONTENDERS = ["vigmm", "metis", "graclus", "spectral", "kmis", "topk", "mincut"]
REPEATS, SHORT = 5, 1.0  # calls are repeated while they take less than this many seconds in all


def grid(num_nodes):
    """A square with four neighbours to a node."""
    side = round(math.sqrt(num_nodes))
    node = torch.arange(side * side).view(side, side)
    right = torch.stack([node[:, :-1].flatten(), node[:, 1:].flatten()])
    down = torch.stack([node[:-1].flatten(), node[1:].flatten()])
    return Data(edge_index=to_undirected(torch.cat([right, down], dim=1)), num_nodes=side * side)


def power_law(num_nodes):
    """Preferential attachment (Barabási and Albert): a new node copies ends of earlier edges, in linear time.

    Slot 2e is the new node of edge e and slot 2e + 1 its target, which is itself a slot: chains of them are followed for
    all edges at once. The first edges make a star around node 0; what is drawn twice becomes one edge.
    """
    rng = np.random.default_rng(0)
    source = np.concatenate([np.arange(1, EDGES + 1), np.repeat(np.arange(EDGES + 1, num_nodes), EDGES)])
    slot = np.ones_like(source)
    slot[EDGES:] = rng.integers(0, 2 * EDGES * (source[EDGES:] - EDGES))
    while (chained := (slot % 2 == 1) & (slot >= 2 * EDGES)).any():
        slot[chained] = slot[slot[chained] // 2]
    target = np.where(slot % 2 == 0, source[slot // 2], 0)
    return Data(edge_index=to_undirected(torch.from_numpy(np.stack([source, target]))), num_nodes=num_nodes)


GRAPHS = {"grid": grid, "power law": power_law}


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
    command = [sys.executable, "-m", "benchmark.pooling.growth", kind, name, str(num_nodes), str(threads)]
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
