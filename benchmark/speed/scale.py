"""Does GIC work on large graphs? Growth exponents, throughputs and memory, in four parts.

fields: receptive fields of power-law graphs up to a million nodes: time and memory, and the exponents they grow with. Time
is that of the processor, so that other programs do not look like growth: of the program itself, and of the system, which
hands out memory, once it is too much to be kept from one call to the next.
samples: training on samples of 25 and 10 neighbours around 512 seeds, on a planted graph of the size and degree of Reddit:
GIC and GraphSAGE, of two layers each, get the same samples. Both compute only what the seeds depend on. Memory is what is held
beside the graph: sampler, networks, optimisers and batches, all together.
clusters: cluster-wise training of both on a smaller planted graph.
ranks: `examples/ddp.py` on one and on two processes of one thread each.

What was measured is kept in scale.json of the output folder, and is not measured again.
"""

import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import SAGEConv
from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE
from tqdm import tqdm

from torch_gic import GIC, Fields, receptive_fields, walk_counts
from torch_gic.fields import trim_fields

from ..common.arguments import RESULTS, make_parser
from ..common.measure import Results, exponent, resident_peak
from ..common.tables import print_table
from ..pooling.growth import power_law
from .clusters import print_clusters
from .made_graphs import CLASSES, EDGES, FEATURES, NODES, planted_graph

SIZES = [round(10**e) for e in (4, 4.5, 5, 5.5, 6)]
QUICK_SIZES = [1000, 2000, 4000]
SCALES = (3, 7)
MAX_NEIGHBORS = 32
SHORT = 1.0  # seconds; calls are repeated while they take less in all, and the shortest counts
NEIGHBORS, SEEDS, CHANNELS = [25, 10], 512, 64
RANK_BATCH = 512  # graphs or seeds of all processes together: with few, they mostly wait for each other
PARTS = ["fields", "samples", "clusters", "ranks"]


def measure_fields(size, num_scales):
    graph = power_law(size)

    def call():
        return receptive_fields(graph.edge_index, num_nodes=size, num_scales=num_scales, max_neighbors=MAX_NEIGHBORS)

    times = []
    with resident_peak() as peak:
        while not times or (sum(map(sum, times)) < SHORT and len(times) < 10):
            start = resource.getrusage(resource.RUSAGE_SELF)
            entries = call().index.size(1)
            end = resource.getrusage(resource.RUSAGE_SELF)
            times.append((end.ru_utime - start.ru_utime, end.ru_stime - start.ru_stime))
    own, system = min(times, key=sum)
    memory = {"megabytes": peak["megabytes"], "entries": entries, "edges": graph.num_edges}
    return {"seconds": own, "system seconds": system, **memory}


def print_fields(args, results):
    sizes = QUICK_SIZES if args.quick else SIZES
    for num_scales in SCALES:
        points = [results.get(f"fields/{num_scales}/{size}", measure_fields, size, num_scales) for size in sizes]
        rows = [[f"{size}", *_field_cells(point)] for size, point in zip(sizes, points, strict=True)]
        whole = [{**point, "seconds": point["seconds"] + point["system seconds"]} for point in points]
        growth = [_growth(sizes, values, "seconds") for values in (points, whole)]
        rows.append(["exponent", "", "", *growth, _growth(sizes, points, "megabytes")])
        title = f"Fields of a power-law graph, K = {num_scales}, max_neighbors = {MAX_NEIGHBORS}, threads: {args.threads}"
        print_table(title, ["nodes", "edges", "field entries", "time", "with the system's", "memory"], rows)


def _field_cells(point):
    memory = "-" if point["megabytes"] is None else f"{point['megabytes']:.0f} MB"
    times = point["seconds"], point["seconds"] + point["system seconds"]
    return [f"{point['edges']}", f"{point['entries']}", *(f"{1000 * seconds:.0f} ms" for seconds in times), memory]


def _growth(sizes, points, name):
    values = [point[name] for point in points]
    return "-" if None in values or min(values) <= 0 else f"{exponent(sizes, values):.2f}"


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
                start = time.perf_counter()
                optimizers[name].zero_grad()
                out = model(batch)
                F.cross_entropy(out, y).backward()
                optimizers[name].step()
                seconds[name] += time.perf_counter() - start
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


def main():
    parser = make_parser("speed.scale", __doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="(default: all)")
    parser.add_argument("--quick", action="store_true", help="small graphs, to see that it works")
    parser.add_argument("--batches", type=int, help="batches of the part 'samples' (default: an epoch)")
    parser.add_argument("--threads", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument("--output", type=Path, help="folder of scale.json (default: benchmark/results)")
    args = parser.parse_args()
    args.output = args.output or (Path("results/quick") if args.quick else RESULTS)
    if args.batches is not None and args.batches < 1:
        parser.error(f"Expected --batches to be at least 1 (got {args.batches})")
    torch.set_num_threads(args.threads)
    results = Results(args.output / "scale.json", threads=args.threads)
    for part, show in (
        ("fields", print_fields),
        ("samples", print_samples),
        ("clusters", print_clusters),
        ("ranks", print_ranks),
    ):
        if part in args.parts:
            show(args, results)


if __name__ == "__main__":
    main()
