"""How fast is GICConv? One command, tables in times GIN and times PNA, a plot.

A training step (forward and backward) of one layer on real batches, beside other layers of PyG; a graph of many features
(Cora's size); the kernels by the number of threads; the receptive fields beside products of sparse matrices; growth with the
size of the fields; peak memory. All contenders of a row take turns in the same rounds, and their medians are compared: times
of different rows, or different runs, are not.

What has been measured is kept in the output folder, and a run that was stopped goes on from there.
"""

import warnings
from pathlib import Path

import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from tqdm import tqdm

import torch_gic
from torch_gic import receptive_fields
from torch_gic.fields.adjacency_powers import reference as fields_reference

from ..common.arguments import RESULTS, add_data_arguments, make_parser
from ..common.data import load_tu
from ..common.measure import Results, median_times, peak_megabytes
from ..common.tables import print_table
from .conv_plot import plot
from .growth import measure_entry_memory, measure_growth
from .layers import COMPONENTS, GIN, PNA, SCALES, WIDE, WIDTHS, kernel_calls, layer_steps, sparse_powers, wide_steps

NODES, EDGES = 2708, 5278  # of Cora
OWN_FIELDS = "receptive_fields"
QUICK = {"datasets": ["MUTAG"], "parts": ["layers", "wide"], "threads": [1], "rounds": 3}


def load_batch(args, name):
    torch.manual_seed(0)
    with torch.device("cpu"):
        batch = next(iter(DataLoader(load_tu(args, name), batch_size=args.graphs, shuffle=True)))
    return batch.to(args.device)


def print_ratios(title, measured, bases):
    """Times with their ratios to the bases: a row per contender, a column per setting."""
    names = list(dict.fromkeys(name for times in measured.values() for name in times))
    rows = []
    for name in names:
        cells = []
        for times in measured.values():
            ratios = "".join(f" {times[name] / times[base]:6.2f}x" for base in bases)
            cells.append(f"{times[name]:.1f} ms{ratios}" if name in times else "-")
        rows.append([name, *cells])
    print_table(f"{title} (x: times {', times '.join(bases)})", ["", *measured], rows)


def measure_layers(args, results, progress):
    def times(batch, widths):
        return median_times(layer_steps(batch, *widths), args.rounds, progress)

    def peaks(batch, widths):
        return {name: peak_megabytes(step) for name, step in layer_steps(batch, *widths).items()}

    for name in args.datasets:
        batch, measured, memory = load_batch(args, name), {}, {}
        for threads in args.threads:
            torch.set_num_threads(threads)
            for widths in WIDTHS:
                label = f"{threads} x {widths[0]} to {widths[1]}"
                progress.set_description(f"{name}, {label}")
                measured[label] = results.get(f"layers/{name}/{label}", times, batch, widths)
        size = f"{args.graphs} graphs, {batch.num_nodes} nodes, {batch.num_edges} edges"
        print_ratios(f"{name} ({size}): a training step, threads x channels", measured, (GIN, PNA))
        for widths in WIDTHS:
            label = f"{widths[0]} to {widths[1]}"
            memory[label] = results.get(f"memory/{name}/{label}", peaks, batch, widths)
        rows = [[layer, *(_megabytes(found.get(layer)) for found in memory.values())] for layer in next(iter(memory.values()))]
        print_table(f"{name}: peak memory of a training step", ["", *memory], rows)


def _megabytes(value):
    return "-" if value is None else f"{value:.0f} MB"


def measure_wide(args, results, progress):
    """One graph of Cora's size with as many features, of which few are not zero."""

    def times():
        torch.manual_seed(0)
        x = (torch.rand(NODES, WIDE[0]) < 18 / WIDE[0]).float()
        half = torch.randint(NODES, (2, EDGES))
        data = Data(x=x, edge_index=torch.cat([half, half.flip(0)], dim=1))
        return median_times(wide_steps(data), args.rounds, progress)

    measured = {}
    for threads in args.threads:
        torch.set_num_threads(threads)
        measured[f"threads: {threads}"] = results.get(f"wide/{threads}", times)
    title = f"{NODES} nodes, {2 * EDGES} edges, {WIDE[0]} to {WIDE[1]} channels: a training step"
    print_ratios(title, measured, ("GCN",))


def measure_kernels(args, results, progress):
    def times(batch):
        return median_times(kernel_calls(batch, 64, args.threads), args.rounds, progress)

    for name in args.datasets:
        measured = results.get(f"kernels/{name}", times, load_batch(args, name))
        kernels = dict.fromkeys(key.split(" / ")[0] for key in measured)
        rows = []
        for kernel in kernels:
            by_threads = [measured[f"{kernel} / {threads}"] for threads in args.threads]
            rows.append([kernel, *(f"{time:.1f} ms {by_threads[0] / time:5.2f}x" for time in by_threads)])
        columns = ["kernel", *(f"threads: {threads}" for threads in args.threads)]
        title = f"{name}: the kernels at 64 channels, K = {SCALES}, C = {COMPONENTS}; x: faster than the first column"
        print_table(title, columns, rows)


def measure_fields(args, results, progress):
    def times(batch):
        edges, n, loops = batch.edge_index, batch.num_nodes, torch.arange(batch.num_nodes)
        row, col = torch.cat([edges[1], loops]), torch.cat([edges[0], loops])
        fields = receptive_fields(edges, num_nodes=n, num_scales=SCALES, add_self_loops=True)
        index, weight = sparse_powers(edges, n, SCALES)
        assert torch.equal(index, fields.index)
        torch.testing.assert_close(weight, fields.weight)
        calls = {
            OWN_FIELDS: lambda: receptive_fields(edges, num_nodes=n, num_scales=SCALES, add_self_loops=True),
            "K = 1": lambda: receptive_fields(edges, num_nodes=n),
            "torch.sparse, same result": lambda: sparse_powers(edges, n, SCALES),
            "torch.sparse, bare powers": lambda: sparse_powers(edges, n, SCALES, shared=False),
            "our reference": lambda: fields_reference(row, col, torch.ones(row.numel()), n, SCALES, None),
        }
        if fields.index.size(1) * batch.num_edges / n > 2e7:  # the steps of all walks at once: minutes
            del calls["our reference"]
        return median_times(calls, args.rounds, progress)

    for name in args.datasets:
        batch, measured = load_batch(args, name), {}
        for threads in args.threads:
            torch.set_num_threads(threads)
            measured[f"threads: {threads}"] = results.get(f"fields/{name}/{threads}", times, batch)
        print_ratios(f"{name}: receptive fields, K = {SCALES}", measured, (OWN_FIELDS,))


PARTS = {
    "layers": measure_layers,
    "wide": measure_wide,
    "kernels": measure_kernels,
    "fields": measure_fields,
    "growth": measure_growth,
    "memory": measure_entry_memory,
}


def parse_args():
    parser = make_parser("speed.conv", __doc__)
    parser.add_argument(
        "--datasets",
        nargs="+",
        default=["MUTAG", "NCI1", "PROTEINS", "COLLAB"],
        help="names in the TU collection (default: %(default)s)",
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="what to measure (default: all)")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], help="on the CPU (default: 1 2)")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="cuda: also of ROCm (default: cpu)")
    parser.add_argument("--rounds", type=int, default=9, help="(default: 9)")
    parser.add_argument("--graphs", type=int, default=32, help="graphs in a batch (default: 32)")
    parser.add_argument("--quick", action="store_true", help="layers on MUTAG and a wide graph, one thread, three rounds")
    add_data_arguments(parser)
    parser.add_argument("--output", type=Path, help="folder of conv.json and conv.png (default: benchmark/results)")
    args = parser.parse_args()
    if args.quick:
        vars(args).update(QUICK)
    args.output = args.output or (Path("results/quick") if args.quick else RESULTS)
    if args.device == "cuda":
        if not torch.cuda.is_available():
            parser.error("Expected a GPU for --device cuda (got a PyTorch that finds none)")
        args.threads = args.threads[:1]
    if args.rounds < 1:
        parser.error(f"Expected --rounds to be at least 1 (got {args.rounds})")
    return args


def main():
    args = parse_args()
    with torch.device(args.device):
        measure(args)


def measure(args):
    warnings.filterwarnings("ignore", message="Sparse")  # CSR is "in beta", says every product
    print(torch_gic.backend_info())
    results = Results(args.output / "conv.json", torch_gic=torch_gic.__version__, graphs=args.graphs, rounds=args.rounds)
    print(", ".join(f"{key} {value}" for key, value in results.values["made by"].items()))
    with tqdm(bar_format="{desc} round {n}, {elapsed}") as progress:
        for part in args.parts:
            progress.set_description(part)
            PARTS[part](args, results, progress)
    print("\nms: median of the rounds; -: too little memory, or too long. Our reference: the same in plain PyTorch.")
    plot(results.values, args.output / "conv.png")
    print(f"Measurements: {results.path}, plot: {args.output / 'conv.png'}")


if __name__ == "__main__":
    main()
