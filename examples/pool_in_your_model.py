"""A plain PyG model, and the same model with VIGMMPool in the middle: what changes is marked, nothing else does.

Task: does a ring of nodes carry one or two communities of labels? Graphs are generated, so it runs offline in seconds.
"""

import argparse

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv, global_mean_pool
from tqdm import tqdm

from torch_gic import VIGMMPool


class Net(torch.nn.Module):
    def __init__(self, in_channels, hidden, num_classes, ratio):
        super().__init__()
        self.conv1 = GCNConv(in_channels, hidden)
        self.pool = VIGMMPool(hidden, ratio) if ratio else None  # <- new
        self.conv2 = GCNConv(hidden, hidden)
        self.lin = torch.nn.Linear(hidden, num_classes)

    def forward(self, x, edge_index, edge_weight, batch):
        x = self.conv1(x, edge_index, edge_weight).relu()
        if self.pool is not None:
            x, edge_index, edge_weight, batch, _ = self.pool(x, edge_index, edge_weight, batch)  # <- new
        x = self.conv2(x, edge_index, edge_weight).relu()
        return self.lin(global_mean_pool(x, batch))


def make_graph(label, generator):
    """A ring of 24 nodes with noisy marks: in one stretch (label 0) or in two opposite ones (label 1)."""
    n = 24
    ring = torch.stack([torch.arange(n), (torch.arange(n) + 1) % n])
    mark = torch.zeros(n)
    for start, length in ((0, 12),) if label == 0 else ((0, 6), (12, 6)):
        mark[start : start + length] = 1
    mark = mark.roll(int(torch.randint(n, (1,), generator=generator)))
    x = torch.stack([mark, 1 - mark], dim=1) + 0.3 * torch.randn(n, 2, generator=generator)
    return Data(x=x, edge_index=torch.cat([ring, ring.flip(0)], dim=1), y=torch.tensor([label]))


def run(ratio, graphs, epochs, seed):
    torch.manual_seed(seed)
    split = 2 * len(graphs) // 3
    train_loader = DataLoader(graphs[:split], batch_size=32, shuffle=True)
    test_loader = DataLoader(graphs[split:], batch_size=128)
    model = Net(2, 32, 2, ratio)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in tqdm(range(epochs), desc=f"VIGMMPool({ratio})" if ratio else "no pooling", unit="epoch"):
        model.train()
        for data in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(data.x, data.edge_index, data.edge_weight, data.batch), data.y).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        correct = sum(int((model(d.x, d.edge_index, d.edge_weight, d.batch).argmax(1) == d.y).sum()) for d in test_loader)
    return correct / (len(graphs) - split)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--ratio", type=float, default=0.25, help="share of the nodes that remain")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--graphs", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    generator = torch.Generator().manual_seed(args.seed)
    graphs = [make_graph(i % 2, generator) for i in range(args.graphs)]
    results = {ratio: run(ratio, graphs, args.epochs, args.seed) for ratio in (None, args.ratio)}
    print(f"\n{'model':<24}accuracy on unseen graphs")
    for ratio, accuracy in results.items():
        print(f"{'GCN' if ratio is None else f'GCN + VIGMMPool({ratio})':<24}{accuracy:.1%}")


if __name__ == "__main__":
    main()
