"""Reads hand-drawn letters: GICConv beside five layers of PyG, a table and a picture. Needs no network connection.

The letters are drawn on the spot (`torch_gic.datasets.Letters`): nodes are points of the plane, edges are strokes. The same
network stands around each layer: an encoder of two layers, two convolutions, a readout. All get the same drawings, epochs and
optimiser. Accuracy is that of the last epoch, on drawings that were not trained on. A second part cuts a graph into parts of
equal size by `torch_gic.cluster`, beside METIS if pymetis is installed.
"""

import argparse
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from common.drawings import draw
from torch_geometric.loader import DataLoader
from torch_geometric.nn import (
    MLP,
    BatchNorm,
    GCNConv,
    GINConv,
    GMMConv,
    PNAConv,
    SAGEConv,
    global_max_pool,
    global_mean_pool,
)
from torch_geometric.utils import degree
from tqdm import tqdm

from torch_gic import GICConv
from torch_gic.datasets import LETTERS, Letters

HIDDEN, COMPONENTS = 32, 5


class Net(torch.nn.Module):
    """An encoder of single points, two convolutions, and a classifier of the whole drawing."""

    def __init__(self, make_conv):
        super().__init__()
        self.encoder = MLP([2, HIDDEN, HIDDEN], plain_last=False)
        self.convs = torch.nn.ModuleList(make_conv() for _ in range(2))
        self.norms = torch.nn.ModuleList(BatchNorm(HIDDEN) for _ in range(2))
        self.classifier = MLP([4 * HIDDEN, HIDDEN, len(LETTERS)])

    def forward(self, data):
        x, levels = self.encoder(data.x), []
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = norm(convolve(conv, x, data)).relu()
            levels += [global_max_pool(x, data.batch), global_mean_pool(x, data.batch)]
        return self.classifier(torch.cat(levels, dim=1))


def convolve(conv, x, data):
    """GMMConv alone is told where a neighbour lies: its pseudo-coordinates are the differences of positions."""
    source, target = data.edge_index
    return conv(x, data.edge_index, *([data.x[source] - data.x[target]] if isinstance(conv, GMMConv) else []))


def make_layers(training):
    """Each layer by its name; PNA has to know how many nodes have each degree."""
    degrees = torch.cat([degree(data.edge_index[1], data.num_nodes, dtype=torch.long) for data in training])
    pna = {"aggregators": ["mean", "min", "max", "std"], "scalers": ["identity", "amplification", "attenuation"]}
    return {
        "GCN": lambda: GCNConv(HIDDEN, HIDDEN),
        "GIN": lambda: GINConv(MLP([HIDDEN, HIDDEN, HIDDEN])),
        "GraphSAGE": lambda: SAGEConv(HIDDEN, HIDDEN),
        "GMMConv": lambda: GMMConv(HIDDEN, HIDDEN, dim=2, kernel_size=COMPONENTS),
        "PNA": lambda: PNAConv(HIDDEN, HIDDEN, **pna, deg=torch.bincount(degrees)),
        "GICConv, C = 1": lambda: GICConv(HIDDEN, HIDDEN, num_components=1),
        "GICConv": lambda: GICConv(HIDDEN, HIDDEN, num_components=COMPONENTS),
    }


def train(model, loader, optimizer):
    model.train()
    for data in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(data), data.y).backward()
        optimizer.step()


@torch.no_grad()
def test(model, loader):
    model.eval()
    return sum(int((model(data).argmax(dim=1) == data.y).sum()) for data in loader) / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=15, help="(default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="of each layer, with seeds 0, 1, ... (default: %(default)s)")
    parser.add_argument("--graphs", type=int, default=1400, help="drawings, half of them to train on (default: %(default)s)")
    parser.add_argument("--lr", type=float, default=5e-3, help="(default: %(default)s)")
    parser.add_argument("--picture", type=Path, default=Path("quickstart.png"), help="(default: %(default)s)")
    args = parser.parse_args()
    torch.set_num_threads(1)  # batches are small: more gain little, and wait for each other where others work too

    training, unseen = Letters(args.graphs // 2), Letters(args.graphs - args.graphs // 2, seed=1)
    train_loader = DataLoader(training, batch_size=32, shuffle=True)
    test_loader = DataLoader(unseen, batch_size=256)
    layers = make_layers(training)
    curves, seconds, model = {name: [] for name in layers}, dict.fromkeys(layers, 0.0), None
    with tqdm(total=len(layers) * args.runs * args.epochs, unit="epoch") as progress:
        for seed in range(args.runs):
            for name, make_conv in layers.items():
                torch.manual_seed(seed)
                model = Net(make_conv)
                optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
                scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
                start, curve = time.perf_counter(), []
                for _ in range(args.epochs):
                    train(model, train_loader, optimizer)
                    scheduler.step()
                    curve.append(test(model, test_loader))
                    progress.set_description(f"{name} run {seed + 1}: {curve[-1]:.0%}")
                    progress.update()
                curves[name].append(curve)
                seconds[name] += time.perf_counter() - start

    print(f"\n{len(unseen)} drawings not trained on, {args.epochs} epochs, {args.runs} runs\n")
    print(f"{'layer':<16}{'accuracy [%]':>16}{'s / epoch':>12}")
    for name, runs in curves.items():
        last = 100 * torch.tensor([curve[-1] for curve in runs])
        print(
            f"{name:<16}{last.mean():>9.1f} ± {last.std(unbiased=False):<4.1f}{seconds[name] / args.runs / args.epochs:>12.2f}"
        )
    try:
        draw(model.eval(), Letters(len(LETTERS), seed=1), curves, args.picture)
        print(f"\nDrawn in {args.picture}")
    except ImportError:
        print("\nNo picture: matplotlib is not installed (pip install matplotlib)")


if __name__ == "__main__":
    main()
