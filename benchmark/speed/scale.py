"""Does GIC work on large graphs? Growth exponents, throughputs and memory, in four parts.

fields: receptive fields of power-law graphs up to a million nodes: time and memory, and the exponents they grow with. Time
is processor time, so other programs do not look like growth. It includes the time in which the system provides memory.
samples: training on samples of 25 and 10 neighbours around 512 seeds, on a planted graph of the size and degree of Reddit:
GIC and GraphSAGE, of two layers each, get the same samples. Both compute only what the seeds depend on. Memory is what is held
beside the graph: sampler, networks, optimisers and batches, all together.
clusters: cluster-wise training of both on a smaller planted graph.
ranks: `examples/ddp.py` on one and on two processes of one thread each.

What was measured is kept in scale.json of the output folder, and is not measured again.
"""

import os
import re
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch_geometric.loader import ClusterLoader, NeighborLoader
from torch_geometric.nn import GraphSAGE, SAGEConv
from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE
from tqdm import tqdm

from torch_gic import GIC, Fields, receptive_fields, walk_counts
from torch_gic.fields import trim_fields
from torch_gic.loader import ClusterData

from ..common.command import add_output_arguments, make_parser, parse, print_table
from ..common.data import CLASSES, EDGES, FEATURES, NODES, planted_graph
from ..common.measure import Results, resident_peak
from .fields import print_power_law

NEIGHBORS, SEEDS, CHANNELS = [25, 10], 512, 64
RANK_BATCH = 512  # graphs or seeds of all processes together: with few, they mostly wait for each other
CLUSTERED, QUICK_CLUSTERED = (50_000, 2_000_000, 602), (2000, 40_000, 16)  # nodes, edges, features
NUM_PARTS, PARTS_OF_A_BATCH, EPOCHS = 100, 5, 2


class SampledSAGE(torch.nn.Module):
    """GraphSAGE of two layers, as wide as GIC, that computes only what the seeds depend on: edges are trimmed as fields."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.convs = torch.nn.ModuleList([SAGEConv(in_channels, CHANNELS), SAGEConv(CHANNELS, out_channels)])

    def forward(self, batch):
        ones = batch.x.new_ones(batch.num_edges, 1)
        edges = Fields.from_pair(batch.edge_index, ones, (batch.num_nodes, batch.num_nodes))
        x = batch.x
        for conv, part in zip(self.convs, trim_fields(edges, batch.batch_size, len(self.convs)), strict=True):
            x = conv((x[: part.num_sources], x[: part.num_nodes]), part.index)
            x = x.relu() if conv is not self.convs[-1] else x
        return x


class SampledGIC(torch.nn.Module):
    """GIC of two layers on samples, whose fields are normalised as in the whole graph."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.gic = GIC(in_channels, out_channels, f"C({CHANNELS})-C({CHANNELS})")

    def forward(self, batch):
        fields = receptive_fields(batch.edge_index, num_nodes=batch.num_nodes, walk_count=batch.walk_count)
        return self.gic(batch.x, batch.edge_index, fields=fields, num_seeds=batch.batch_size)


def train_on(call, y, optimizer, chosen=slice(None)):
    """A step of training: the output and the seconds."""
    start = time.perf_counter()
    optimizer.zero_grad()
    out = call()
    F.cross_entropy(out[chosen], y[chosen]).backward()
    optimizer.step()
    return out, time.perf_counter() - start


def measure_samples(num_nodes, num_edges, num_features, num_batches):
    """The networks train on each sample in turn, so that a slow moment hits all."""
    data = planted_graph(num_nodes, num_edges, num_features)
    with resident_peak() as peak:
        data.walk_count = walk_counts(data.edge_index, num_nodes=num_nodes)
        seeds = data.train_mask.nonzero().flatten()
        del data.train_mask
        loader = NeighborLoader(data, NEIGHBORS, seeds, batch_size=SEEDS, shuffle=True, is_sorted=True)
        torch.manual_seed(0)
        models = {"GraphSAGE": SampledSAGE(num_features, CLASSES), "GIC": SampledGIC(num_features, CLASSES)}
        optimizers = {name: torch.optim.AdamW(model.parameters(), lr=0.003) for name, model in models.items()}
        total = min(num_batches or len(loader), len(loader))
        seconds, right = (dict.fromkeys(models, 0) for _ in range(2))
        sampling, sampled, count = 0.0, 0, 0
        iterator = iter(loader)
        for _ in tqdm(range(total), desc="samples", unit="batch"):
            start = time.perf_counter()
            batch = next(iterator)
            sampling += time.perf_counter() - start
            sampled += batch.num_nodes
            y = batch.y[: batch.batch_size]
            count += y.numel()
            for name, model in models.items():
                out, spent = train_on(partial(model, batch), y, optimizers[name])
                seconds[name] += spent
                right[name] += int((out.argmax(dim=1) == y).sum())
    sampling /= total
    step = {name: seconds[name] / total for name in models}
    return {
        "batches": total,
        "batches of an epoch": len(loader),
        "seconds of sampling": sampling,
        "seconds of a step": step,
        "seeds per second": {name: count / total / (sampling + step[name]) for name in models},
        "accuracy": {name: right[name] / count for name in models},
        "nodes of a batch": sampled / total,
        "megabytes": peak["megabytes"],
    }


def print_samples(args, results):
    if not (WITH_TORCH_SPARSE or WITH_PYG_LIB):
        print("samples: left out, NeighborLoader needs pyg-lib or torch-sparse")
        return
    size = (2000, 40_000, 16) if args.quick else (NODES, EDGES, FEATURES)
    point = results.get(f"samples/{size}/{args.batches}", measure_samples, *size, args.batches)
    rows = []
    for name, speed in point["seeds per second"].items():
        step = 1000 * point["seconds of a step"][name]
        share = speed / point["seeds per second"]["GraphSAGE"]
        rows.append([name, f"{speed:.0f}", f"{share:.2f}", f"{step:.0f} ms", f"{point['accuracy'][name]:.1%}"])
    sampling = 1000 * point["seconds of sampling"]
    memory = "-" if point["megabytes"] is None else f"{point['megabytes']:.0f} MB"
    print(
        f"\nA batch has {point['nodes of a batch']:.0f} nodes and takes {sampling:.0f} ms to sample."
        f" Memory beside the graph: {memory}."
    )
    print_table(
        f"Samples of {size[0]} nodes, {size[1]} edges, {size[2]} features: {NEIGHBORS} neighbours of {SEEDS} seeds;"
        f" {point['batches']} of {point['batches of an epoch']} batches of an epoch",
        ["", "seeds per second", "of GraphSAGE", "step", "accuracy in training"],
        rows,
    )


def measure_clusters(num_nodes, num_edges, num_features):
    """Both networks train on each batch in turn. Accuracy is that of the nodes not trained on, in the last epoch."""
    data = planted_graph(num_nodes, num_edges, num_features)
    start = time.perf_counter()
    parts = ClusterData(data, min(NUM_PARTS, num_nodes // 20))
    clustering = time.perf_counter() - start
    torch.manual_seed(0)
    loader = ClusterLoader(parts, batch_size=PARTS_OF_A_BATCH, shuffle=True)
    models = {
        "GraphSAGE": GraphSAGE(num_features, CHANNELS, 2, CLASSES),
        "GIC": GIC(num_features, CLASSES, f"C({CHANNELS})-C({CHANNELS})"),
    }
    optimizers = {name: torch.optim.AdamW(model.parameters(), lr=0.003) for name, model in models.items()}
    seconds, trained = dict.fromkeys(models, 0.0), 0
    for _ in range(EPOCHS):
        right, tested = dict.fromkeys(models, 0), 0
        for batch in loader:
            trained += int(batch.train_mask.sum())
            tested += int((~batch.train_mask).sum())
            for name, model in models.items():
                call = partial(model, batch.x, batch.edge_index)
                out, spent = train_on(call, batch.y, optimizers[name], batch.train_mask)
                seconds[name] += spent
                right[name] += int((out.argmax(dim=1) == batch.y)[~batch.train_mask].sum())
    return {
        "seconds of clustering": clustering,
        "nodes per second": {name: trained / seconds[name] for name in models},
        "accuracy": {name: right[name] / tested for name in models},
    }


def print_clusters(args, results):
    size = QUICK_CLUSTERED if args.quick else CLUSTERED
    point = results.get(f"clusters/{size}", measure_clusters, *size)
    rows = [
        [name, f"{speed:.0f}", f"{speed / point['nodes per second']['GraphSAGE']:.2f}", f"{point['accuracy'][name]:.1%}"]
        for name, speed in point["nodes per second"].items()
    ]
    print_table(
        f"Clusters of {size[0]} nodes, {size[1]} edges, {size[2]} features: {EPOCHS} epochs of {NUM_PARTS} parts,"
        f" {PARTS_OF_A_BATCH} in a batch; made in {point['seconds of clustering']:.1f} s",
        ["", "nodes to train on per second", "of GraphSAGE", "accuracy of the other nodes"],
        rows,
    )


def measure_ranks(level, world, size):
    script = Path(__file__).parents[2] / "examples" / "ddp.py"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(world), str(script)]
    command += ["--level", level, "--size", str(size), "--epochs", "3", "--batch-size", str(RANK_BATCH)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(script.parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return max(float(speed) for speed in re.findall(r"([\d.]+) per second", done.stdout))


def print_ranks(args, results):
    rows = []
    size = 100 if args.quick else 4000
    for level in ("graph", "node"):
        if level == "node" and not (WITH_TORCH_SPARSE or WITH_PYG_LIB):
            continue
        one, two = (results.get(f"ranks/{level}/{world}/{size}", measure_ranks, level, world, size) for world in (1, 2))
        rows.append([level, f"{one:.0f}", f"{two:.0f}", f"{two / one:.2f}"])
    print_table(
        f"Graphs or seeds per second of examples/ddp.py, batches of {RANK_BATCH}",
        ["level", "one process", "two", "two of one"],
        rows,
    )


PARTS = {"fields": print_power_law, "samples": print_samples, "clusters": print_clusters, "ranks": print_ranks}


def main():
    parser = make_parser("speed.scale", __doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="(default: all)")
    parser.add_argument("--batches", type=int, help="batches of the part 'samples' (default: an epoch)")
    parser.add_argument("--threads", type=int, default=1, help="(default: %(default)s)")
    add_output_arguments(parser, "small graphs", "scale.json")
    args = parse(parser, {}, "batches")
    torch.set_num_threads(args.threads)
    results = Results(args.output / "scale.json", threads=args.threads)
    for part in args.parts:
        PARTS[part](args, results)


if __name__ == "__main__":
    main()
