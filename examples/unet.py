"""Node classification with a U-Net: coarsen with VIGMMPool, work on the coarse graph, come back with `lift`.

The graph is made here, so nothing is downloaded: communities of nodes, each of one of three classes, with a few edges
between them. A single node says little of its class, its whole community says all, and two layers of GCN do not see that
far.
"""

import argparse

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import BatchNorm, GCNConv
from torch_geometric.utils import stochastic_blockmodel_graph
from tqdm import tqdm

from torch_gic import VIGMMPool

NUM_CLASSES = 3


def make_graph(communities, size, seed):
    """Each node sees its class through noise four times as strong as the difference between classes."""
    torch.manual_seed(seed)
    inside, between = 4 / size, 0.5 / (size * communities)  # about four neighbours inside, and half a neighbour outside
    probabilities = torch.full((communities, communities), between).fill_diagonal_(inside)
    edge_index = stochastic_blockmodel_graph([size] * communities, probabilities)
    y = torch.randint(NUM_CLASSES, (communities,)).repeat_interleave(size)
    x = F.one_hot(y, NUM_CLASSES) + 4 * torch.randn(y.numel(), NUM_CLASSES)
    order = torch.randperm(y.numel())
    return Data(x=x, edge_index=edge_index, y=y, train=order[: len(order) // 5], test=order[len(order) // 5 :])


class UNet(torch.nn.Module):
    """Convolution, coarsening, convolution, back to the nodes, convolution. Without a ratio the coarse part is left out."""

    def __init__(self, in_channels, hidden, out_channels, ratio):
        super().__init__()
        self.down, self.down_norm = GCNConv(in_channels, hidden), BatchNorm(hidden)
        self.pool = None if ratio is None else VIGMMPool(hidden, ratio, reduce="mean")
        self.bottom, self.bottom_norm = GCNConv(hidden, hidden), BatchNorm(hidden)
        self.up = GCNConv(hidden if ratio is None else 2 * hidden, out_channels)

    def forward(self, x, edge_index):
        x = self.down_norm(self.down(x, edge_index)).relu()
        if self.pool is not None:
            out = self.pool(x, edge_index)
            coarse = self.bottom_norm(self.bottom(out.x, out.edge_index, out.edge_weight)).relu()
            x = torch.cat([x, self.pool.lift(coarse, out.select)], dim=1)  # fine and coarse side by side
        return self.up(x, edge_index)


def run(ratio, data, epochs, seed):
    torch.manual_seed(seed)
    model = UNet(data.num_features, 32, NUM_CLASSES, ratio)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-3)
    for _ in tqdm(range(epochs), desc=f"U-Net, ratio {ratio}" if ratio else "no coarsening", unit="epoch"):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(data.x, data.edge_index)[data.train], data.y[data.train]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        predicted = model(data.x, data.edge_index)[data.test].argmax(dim=1)
    return float((predicted == data.y[data.test]).double().mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--communities", type=int, default=50)
    parser.add_argument("--size", type=int, default=40, help="nodes of a community")
    parser.add_argument("--ratio", type=float, default=0.025, help="share of the nodes that remain")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    data = make_graph(args.communities, args.size, args.seed)
    results = {ratio: run(ratio, data, args.epochs, args.seed) for ratio in (None, args.ratio)}
    print(f"\n{data.num_nodes} nodes, {data.num_edges // 2} edges, {data.train.numel()} nodes with a label")
    print(f"{'model':<32}accuracy on the other nodes")
    for ratio, accuracy in results.items():
        print(f"{'GCN' if ratio is None else f'U-Net with VIGMMPool({ratio})':<32}{accuracy:.1%}")


if __name__ == "__main__":
    main()
