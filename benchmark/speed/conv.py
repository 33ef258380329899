"""How fast is GICConv? Tables in times GIN and times PNA.

It measures a training step (forward and backward) of one layer on real batches, beside other layers of PyG. Further parts are
a graph of many features (Cora's size), kernels by the number of threads, receptive fields beside products of sparse matrices,
growth with the size of the fields, and peak memory. The layers of a row take turns in the same rounds, and their medians are
compared. Do not compare times of different rows or runs.

What has been measured is kept in the output folder, and a run that was stopped goes on from there.
"""

import warnings
from functools import partial

import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.utils import degree
from tqdm import tqdm

import torch_gic
from torch_gic import GIC, GICConv, receptive_fields

from ..common.command import add_data_arguments, add_output_arguments, make_parser, parse, print_table
from ..common.data import load_batch
from ..common.layers import COMPONENTS, LAYERS, SCALES, About, convolve, pseudo_coordinates
from ..common.measure import Results, median_times, peak_megabytes, print_ratios
from .fields import measure_entry_memory, measure_fields, measure_growth

NODES, EDGES = 2708, 5278  # of Cora
WIDTHS = ((38, 64), (64, 128), (128, 256))
OURS, SINGLE, PRINTED, GIN, PNA = "GICConv", "GICConv, C = 1", "GICConv of GIC.as_printed", "GIN", "PNA"
WIDE = 1433, 64  # channels of Cora

QUICK = {"datasets": ["MUTAG"], "parts": ["layers", "wide"], "threads": [1], "rounds": 3}


def layer_steps(batch, in_channels, out_channels):
    """A training step of each layer on the same nodes, by name. Fields are given, as they are made once per data set."""
    torch.manual_seed(0)
    x = torch.randn(batch.num_nodes, in_channels, requires_grad=True)
    edges, about = batch.edge_index, About(torch.bincount(degree(batch.edge_index[1], batch.num_nodes).long()))
    near = receptive_fields(edges, num_nodes=batch.num_nodes)
    far = receptive_fields(edges, num_nodes=batch.num_nodes, num_scales=SCALES, add_self_loops=True)
    pseudo = pseudo_coordinates(edges, batch.num_nodes, None)
    calls = {
        name: _Peer(make(in_channels, out_channels, about), edges, pseudo) for name, make in LAYERS.items() if name != OURS
    }
    printed = GIC.as_printed(in_channels, out_channels, architecture=f"C({out_channels})").layers[0]
    ours = {
        OURS: (GICConv(in_channels, out_channels), {"fields": near}),
        SINGLE: (GICConv(in_channels, out_channels, num_components=1), {"fields": near}),
        f"{OURS}, fields each time": (GICConv(in_channels, out_channels), {}),
        PRINTED: (printed, {"fields": far}),
    }
    steps = {name: partial(step, layer, x, (edges,), given) for name, (layer, given) in ours.items()}
    return {name: partial(step, layer, x, (), {}) for name, layer in calls.items()} | steps


class _Peer(torch.nn.Module):
    """A layer with what it takes beside the features."""

    def __init__(self, layer, edges, pseudo):
        super().__init__()
        self.layer, self.edges, self.pseudo = layer, edges, pseudo

    def forward(self, x):
        return convolve(self.layer, x, self.edges, self.pseudo)


def wide_steps(data):
    """A training step on one graph of many features, whose fields are made once."""
    x = data.x.clone().requires_grad_()
    fields = receptive_fields(data.edge_index, num_nodes=data.num_nodes)
    layers = {
        "GCN": (GCNConv(*WIDE, cached=True), {}),
        OURS: (GICConv(*WIDE), {"fields": fields}),
        SINGLE: (GICConv(*WIDE, num_components=1), {"fields": fields}),
    }
    return {name: partial(step, layer, x, (data.edge_index,), given) for name, (layer, given) in layers.items()}


def step(layer, x, arguments, options):
    layer(x, *arguments, **options).square().mean().backward()
    x.grad = None
    layer.zero_grad()


def kernel_calls(batch, in_channels, threads):
    """The compiled kernels alone, each on each number of threads."""
    torch.manual_seed(0)
    fields = receptive_fields(batch.edge_index, num_nodes=batch.num_nodes, num_scales=SCALES)
    mu = torch.randn(SCALES, COMPONENTS, in_channels)
    mixture = mu, torch.full_like(mu, 2.0), torch.zeros(SCALES, COMPONENTS)
    operands = torch.randn(batch.num_nodes, in_channels), *mixture, 8 * fields.weight, fields.index[0], fields.rowptr
    encode, backward = torch.ops.torch_gic.gaussian_encode, torch.ops.torch_gic.gaussian_encode_backward
    encoding, mass = encode(*operands)
    calls = {
        "encoding, forward": lambda: encode(*operands),
        "encoding, backward": lambda: backward(encoding, mass, encoding, mass, *operands),
        "fields": lambda: receptive_fields(batch.edge_index, num_nodes=batch.num_nodes, num_scales=SCALES),
    }

    def run(call, count):
        torch.set_num_threads(count)
        call()

    return {f"{name} / {count}": partial(run, call, count) for name, call in calls.items() for count in threads}


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
    add_output_arguments(parser, "layers on MUTAG and a wide graph, one thread, three rounds", "conv.json")
    add_data_arguments(parser)
    args = parse(parser, QUICK, "rounds")
    if args.device == "cuda":
        if not torch.cuda.is_available():
            parser.error("Expected a GPU for --device cuda (got a PyTorch that finds none)")
        args.threads = args.threads[:1]
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
    print(f"Measurements: {results.path}")


if __name__ == "__main__":
    main()
