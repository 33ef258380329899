"""How fast is GICConv? One command, tables, a plot.

A training step (forward and backward) of one layer on real batches, beside the filter product that it cannot avoid and
other layers; the receptive fields beside products of sparse matrices; growth with the size of the fields; peak memory. All
contenders of a row take turns in the same rounds, and their medians are compared: times of different rows, or different
runs, are not.

What has been measured is kept in the output folder, and a run that was stopped goes on from there.
"""

import argparse
import warnings
from pathlib import Path

import torch
from torch_geometric.loader import DataLoader
from tqdm import tqdm

import torch_gic
from torch_gic import receptive_fields
from torch_gic.ops.adjacency_powers import reference as fields_reference

from .conv_growth import measure_entry_memory, measure_growth
from .conv_layers import COMPONENTS, PRODUCT, SCALES, WIDTHS, kernel_calls, layer_steps, sparse_powers
from .conv_plot import plot
from .data import add_data_arguments, load_dataset
from .measure import Results, median_times, peak_megabytes, print_table


def load_batch(args, name):
    torch.manual_seed(0)
    with torch.device("cpu"):
        batch = next(iter(DataLoader(load_dataset(args, name), batch_size=args.graphs, shuffle=True)))
    batch = batch.to(args.device)
    return batch, receptive_fields(batch.edge_index, num_nodes=batch.num_nodes, num_scales=SCALES)


def print_ratios(title, measured, base):
    """Times with their ratio to the base."""
    names = list(dict.fromkeys(name for times in measured.values() for name in times))
    rows = []
    for label, times in measured.items():
        rows.append([label, *(f"{times[n]:.1f} ms {times[n] / times[base]:6.2f}x" if n in times else "-" for n in names)])
    print_table(title, ["", *names], rows)


def measure_layers(args, results, progress):
    def times(batch, fields, widths):
        return median_times(layer_steps(batch, fields, *widths), args.rounds, progress)

    def peaks(batch, fields, widths):
        return {name: peak_megabytes(step) for name, step in layer_steps(batch, fields, *widths).items()}

    for name in args.datasets:
        batch, fields = load_batch(args, name)
        measured, rows = {}, []
        for threads in args.threads:
            torch.set_num_threads(threads)
            for widths in WIDTHS:
                label = f"{threads} x {widths[0]} to {widths[1]}"
                progress.set_description(f"{name}, {label}")
                measured[label] = results.get(f"layers/{name}/{label}", times, batch, fields, widths)
        size = f"{batch.num_nodes} vertices, {batch.num_edges} edges, {fields[0].size(1)} field entries"
        print_ratios(f"{name} ({size}): a training step, threads x channels", measured, PRODUCT)
        names = list(next(iter(measured.values())))
        for widths in WIDTHS:
            label = f"{widths[0]} to {widths[1]}"
            memory = results.get(f"memory/{name}/{label}", peaks, batch, fields, widths)
            rows.append([label, *(f"{memory[n]:.0f} MB" if memory.get(n) is not None else "-" for n in names)])
        print_table(f"{name}: peak memory of a training step", ["channels", *names], rows)


def measure_kernels(args, results, progress):
    def times(batch, fields):
        return median_times(kernel_calls(batch, fields, 64, args.threads), args.rounds, progress)

    for name in args.datasets:
        measured = results.get(f"kernels/{name}", times, *load_batch(args, name))
        kernels = dict.fromkeys(key.split(" / ")[0] for key in measured)
        rows = []
        for kernel in kernels:
            by_threads = [measured[f"{kernel} / {threads}"] for threads in args.threads]
            rows.append([kernel, *(f"{time:.1f} ms {by_threads[0] / time:5.2f}x" for time in by_threads)])
        columns = ["kernel", *(f"threads: {threads}" for threads in args.threads)]
        print_table(f"{name}: the kernels at 64 channels; x: faster than the first column", columns, rows)


def measure_fields(args, results, progress):
    def times(batch, fields):
        edges, n, loops = batch.edge_index, batch.num_nodes, torch.arange(batch.num_nodes)
        row, col = torch.cat([edges[1], loops]), torch.cat([edges[0], loops])
        index, weight = sparse_powers(edges, n, SCALES)
        assert torch.equal(index, fields[0])
        torch.testing.assert_close(weight, fields[1])
        calls = {
            "receptive_fields": lambda: receptive_fields(edges, num_nodes=n, num_scales=SCALES),
            "filter product, 64 to 128": layer_steps(batch, fields, 64, 128)[PRODUCT],
            "torch.sparse, same result": lambda: sparse_powers(edges, n, SCALES),
            "torch.sparse, bare powers": lambda: sparse_powers(edges, n, SCALES, shared=False),
            "our reference": lambda: fields_reference(row, col, torch.ones(row.numel()), n, SCALES, None),
        }
        if fields[0].size(1) * batch.num_edges / n > 2e7:  # the steps of all walks at once: minutes
            del calls["our reference"]
        return median_times(calls, args.rounds, progress)

    for name in args.datasets:
        batch, fields = load_batch(args, name)
        measured = {}
        for threads in args.threads:
            torch.set_num_threads(threads)
            measured[f"threads: {threads}"] = results.get(f"fields/{name}/{threads}", times, batch, fields)
        print_ratios(f"{name}: receptive fields, K = {SCALES}", measured, "receptive_fields")


PARTS = {
    "layers": measure_layers,
    "kernels": measure_kernels,
    "fields": measure_fields,
    "growth": measure_growth,
    "memory": measure_entry_memory,
}


def parse_args():
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.conv", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
    parser.add_argument("--graphs", type=int, default=100, help="graphs in a batch (default: 100)")
    add_data_arguments(parser)
    parser.add_argument(
        "--output", type=Path, default=Path("results"), help="folder of conv.json and conv.png (default: results)"
    )
    args = parser.parse_args()
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
    print(
        "\nms: median of the rounds; x: ratio to the first column of the row, if not said otherwise; -: too little memory, or"
        f"\ntoo long. K = {SCALES} scales, C = {COMPONENTS} components. Our reference: the same in plain PyTorch."
    )
    plot(results.values, args.output / "conv.png")
    print(f"Measurements: {results.path}, plot: {args.output / 'conv.png'}")


if __name__ == "__main__":
    main()
