"""Time of a training step of one layer (forward and backward) on real batches, against the filter product it cannot avoid.

Contenders take turns in every round, so that a slow moment of the machine hits all of them, and their medians are
compared as ratios. `field` runs on the multi-scale receptive fields that GICConv uses, the others on one-hop edges.
"""

import argparse
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch_geometric.datasets import TUDataset
from torch_geometric.loader import DataLoader
from torch_geometric.nn import ChebConv, GINConv, GMMConv, PNAConv
from torch_geometric.utils import degree
from tqdm import tqdm

from torch_gic import GICConv, receptive_fields
from torch_gic.ops import gaussian_encode

SCALES = COMPONENTS = 7
WIDTHS = ((38, 64), (64, 128), (128, 256))


def load_batch(args, name):
    if args.data_url:
        TUDataset.url = args.data_url.rstrip("/")
    torch.manual_seed(args.seed)
    return next(iter(DataLoader(TUDataset(args.root, name), batch_size=args.graphs, shuffle=True)))


def contenders(batch, fields, in_channels, out_channels):
    """A training step of each, by name: the product first."""
    torch.manual_seed(0)
    x = torch.randn(batch.num_nodes, in_channels, requires_grad=True)
    edge_index, (field_index, field_weight) = batch.edge_index, fields
    conv = GICConv(in_channels, out_channels)
    encoding = torch.randn(batch.num_nodes, conv.lin.weight.size(1), requires_grad=True)
    pseudo = torch.rand(edge_index.size(1), 2)
    histogram = torch.bincount(degree(edge_index[1], batch.num_nodes).long())
    cheb, gmm = ChebConv(in_channels, out_channels, K=7), GMMConv(in_channels, out_channels, dim=2, kernel_size=7)
    field_gmm = GMMConv(in_channels, out_channels, dim=SCALES, kernel_size=7)
    pna = PNAConv(
        in_channels, out_channels, ["mean", "min", "max", "std"], ["identity", "amplification", "attenuation"], histogram
    )
    gin = GINConv(
        torch.nn.Sequential(
            torch.nn.Linear(in_channels, out_channels), torch.nn.ReLU(), torch.nn.Linear(out_channels, out_channels)
        )
    )

    def reference():
        scale = conv.log_scale.exp()
        log_pi = conv.mixture.alpha.log_softmax(-1)
        gradients = gaussian_encode(x, conv.mu, conv.sigma, log_pi, field_index, field_weight * scale, batch.num_nodes)
        return conv.lin(gradients.flatten(1))

    calls = {
        "filter product": lambda: F.linear(encoding, conv.lin.weight),
        "GICConv (field)": lambda: conv(x, edge_index, fields=fields),
        "reference (field)": reference,
        "GMMConv (field)": lambda: field_gmm(x, field_index, field_weight),
        "GMMConv": lambda: gmm(x, edge_index, pseudo),
        "ChebConv": lambda: cheb(x, edge_index),
        "PNAConv": lambda: pna(x, edge_index),
        "GINConv": lambda: gin(x, edge_index),
    }
    parameters = [x, encoding, *(p for layer in (conv, cheb, gmm, field_gmm, pna, gin) for p in layer.parameters())]

    def step(call):
        for parameter in parameters:
            parameter.grad = None
        call().square().mean().backward()

    return {name: (lambda call=call: step(call)) for name, call in calls.items()}


def measure(steps, rounds, progress):
    """The median time of each in milliseconds, after one round that does not count."""
    times = {name: [] for name in steps}
    for number in range(rounds + 1):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            if number > 0:
                times[name].append(1000 * (time.perf_counter() - start))
        progress.update()
    return {name: sorted(values)[len(values) // 2] for name, values in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=["MUTAG", "NCI1", "PROTEINS"], help="names in the TU collection")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--graphs", type=int, default=100, help="graphs in the batch")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--root", type=Path, default=Path("data"), help="where PyG keeps the data")
    parser.add_argument("--data-url", help="folder with NAME.zip, as http(s):// or file:// (default: PyG's own)")
    args = parser.parse_args()

    with tqdm(total=len(args.datasets) * len(args.threads) * len(WIDTHS) * (args.rounds + 1), unit="round") as progress:
        for name in args.datasets:
            batch = load_batch(args, name)
            fields = receptive_fields(batch.edge_index, num_nodes=batch.num_nodes, num_scales=SCALES)
            progress.write(f"\n{name}: {batch.num_nodes} vertices, {batch.num_edges} edges, {fields[0].size(1)} field entries")
            header = True
            for threads in args.threads:
                torch.set_num_threads(threads)
                for widths in WIDTHS:
                    progress.set_description(f"{name} {widths}, {threads} threads")
                    result = measure(contenders(batch, fields, *widths), args.rounds, progress)
                    if header:
                        progress.write(f"{'threads, widths':<18}" + "".join(f"{label:>19}" for label in result))
                        header = False
                    cells = [f"{value:.1f} ms {value / result['filter product']:5.2f}x" for value in result.values()]
                    progress.write(f"{threads}, {widths!s:<15}" + "".join(f"{cell:>19}" for cell in cells))
    print("\nms: median of a forward and backward pass; x: ratio to the filter product in the same rounds")


if __name__ == "__main__":
    main()
