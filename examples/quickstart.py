"""Trains the GIC network beside GCN and GIN on an embedded data set, prints a table and draws the result. Needs no network.

The two classes of graphs differ only in how much their neighbourhoods vary: see `torch_gic.datasets.NeighborhoodVariation`.
All networks get the same graphs, epochs, optimiser and readout; accuracy is that of the last epoch on unseen graphs.
"""

import argparse
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCN, GIN, BatchNorm, global_max_pool
from tqdm import tqdm

from torch_gic import GIC, ReceptiveFields
from torch_gic.datasets import NUM_LEAVES, NeighborhoodVariation


class MessagePassingNet(torch.nn.Module):
    """Three layers of a PyG network, with the normalisation, readout and classifier of the GIC network beside it."""

    def __init__(self, network, hidden=32):
        super().__init__()
        self.network = network(1, hidden, num_layers=3, out_channels=hidden, norm="batch_norm")
        self.norm = BatchNorm(hidden)
        self.classifier = torch.nn.Sequential(torch.nn.Linear(hidden, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))

    def forward(self, data):
        x = self.norm(self.network(data.x, data.edge_index)).relu()
        return self.classifier(global_max_pool(x, data.batch))


class GICNet(torch.nn.Module):
    def __init__(self, num_components):
        super().__init__()
        self.network = GIC(1, 2, "C(16)-P-FC(32)", num_components, readout="last")

    def forward(self, data):
        return self.network(data.x, data.edge_index, batch=data.batch, fields=data.fields)


NETWORKS = {
    "GCN": lambda: MessagePassingNet(GCN),
    "GIN": lambda: MessagePassingNet(GIN),
    "GIC, C=1": lambda: GICNet(num_components=1),
    "GIC": lambda: GICNet(num_components=5),
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


def draw(curves, graphs, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(14, 4), width_ratios=(1, 1, 1.4))
    for label, (title, ax) in enumerate(zip(("class 0: each centre has both", "class 1: narrow or wide"), axes, strict=False)):
        graph = next(graph for graph in graphs if int(graph.y) == label)
        num_centres = graph.num_nodes // (1 + NUM_LEAVES)
        leaves = graph.x[num_centres:].view(num_centres, NUM_LEAVES)
        for centre, values in enumerate(leaves):
            ax.plot(values, [centre + 1] * NUM_LEAVES, "o", color="tab:blue", ms=6, alpha=0.6)
        ax.plot(leaves.mean(dim=1), range(1, num_centres + 1), "k|", ms=12)
        ax.set(
            xlabel="values of its leaves (bar: their mean)",
            ylabel="centre",
            title=title,
            xlim=(-2.4, 2.4),
            yticks=range(1, num_centres + 1),
        )
    ax = axes[2]
    for (name, runs), style in zip(curves.items(), ("--", ":", "-.", "-"), strict=True):
        ax.plot(range(1, len(runs[0]) + 1), 100 * torch.tensor(runs).mean(dim=0), style, lw=2, label=name)
    ax.axhline(50, color="0.6", lw=1, zorder=0, label="chance")
    ax.set(xlabel="epoch", ylabel="accuracy on unseen graphs [%]", ylim=(30, 102), title=f"mean of {len(runs)} runs")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(loc="center right")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--runs", type=int, default=3, help="runs of each network, with seeds 0, 1, ...")
    parser.add_argument("--graphs", type=int, default=600, help="number of graphs; two thirds are for training")
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--picture", type=Path, default=Path("quickstart.png"), help="where to draw the result")
    args = parser.parse_args()
    torch.set_num_threads(1)  # batches are small: more gain little, and wait for each other where others work too

    graphs = NeighborhoodVariation(args.graphs, pre_transform=ReceptiveFields())
    split = 2 * args.graphs // 3
    train_loader = DataLoader(graphs[:split], batch_size=25, shuffle=True)
    test_loader = DataLoader(graphs[split:], batch_size=200)
    curves, seconds = {name: [] for name in NETWORKS}, dict.fromkeys(NETWORKS, 0.0)
    with tqdm(total=len(NETWORKS) * args.runs * args.epochs, unit="epoch") as progress:
        for name, network in NETWORKS.items():
            for seed in range(args.runs):
                torch.manual_seed(seed)
                model = network()
                optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
                start, curve = time.perf_counter(), []
                for _ in range(args.epochs):
                    train(model, train_loader, optimizer)
                    curve.append(test(model, test_loader))
                    progress.set_description(f"{name} run {seed + 1}: {curve[-1]:.0%}")
                    progress.update()
                curves[name].append(curve)
                seconds[name] += time.perf_counter() - start

    print(f"\n{len(graphs) - split} unseen graphs, {args.epochs} epochs, {args.runs} runs\n")
    print(f"{'network':<10}{'accuracy [%]':>16}{'s / epoch':>12}")
    for name, runs in curves.items():
        last = 100 * torch.tensor([curve[-1] for curve in runs])
        print(
            f"{name:<10}{last.mean():>9.1f} ± {last.std(unbiased=False):<4.1f}{seconds[name] / args.runs / args.epochs:>12.2f}"
        )
    try:
        draw(curves, graphs, args.picture)
        print(f"\nDrawn in {args.picture}")
    except ImportError:
        print("\nNo picture: matplotlib is not installed (pip install matplotlib)")


if __name__ == "__main__":
    main()
