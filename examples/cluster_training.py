"""Cluster-wise training of a node classifier: the graph is cut into parts, and a batch holds a few of them.

PyG's ClusterLoader does the loading. The parts are those of `torch_gic.cluster`, of nearly equal size, so that neither METIS
nor pyg-lib nor torch-sparse has to be there. Beside it, the same network is trained on the whole graph at once.

By default the graph is made here: ten communities, with noisy features. `--dataset PubMed` takes that of PyG.
"""

import argparse
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.datasets import Planetoid
from torch_geometric.loader import ClusterLoader
from torch_geometric.utils import stochastic_blockmodel_graph
from tqdm import tqdm

from torch_gic import GICConv
from torch_gic.loader import ClusterData


class Net(torch.nn.Module):
    def __init__(self, in_channels, hidden_channels, out_channels):
        super().__init__()
        self.conv1 = GICConv(in_channels, hidden_channels)
        self.conv2 = GICConv(hidden_channels, out_channels)

    def forward(self, x, edge_index):
        x = F.dropout(self.conv1(x, edge_index).relu(), training=self.training)
        return self.conv2(x, edge_index)


def communities(num_nodes=5000, num_classes=10):
    """A graph with as many communities as classes. A feature is the class, under noise as large as itself."""
    size = num_nodes // num_classes
    inside, outside = 12 / size, 6 / num_nodes
    probabilities = torch.full((num_classes, num_classes), outside).fill_diagonal_(inside)
    edge_index = stochastic_blockmodel_graph([size] * num_classes, probabilities)
    y = torch.arange(num_classes).repeat_interleave(size)
    x = F.one_hot(y) + torch.randn(y.numel(), num_classes)
    part = torch.rand(y.numel())
    return Data(x=x, edge_index=edge_index, y=y, train_mask=part < 0.2, test_mask=part >= 0.5)


def train(batches, data, args):
    """The accuracy on the test nodes, of the whole graph, and the seconds of training."""
    torch.manual_seed(args.seed)
    model = Net(data.num_features, args.hidden_channels, int(data.y.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    start = time.perf_counter()
    for _ in tqdm(range(args.epochs), unit="epoch"):
        model.train()
        for batch in batches:
            if not batch.train_mask.any():
                continue
            optimizer.zero_grad()
            out = model(batch.x, batch.edge_index)
            F.cross_entropy(out[batch.train_mask], batch.y[batch.train_mask]).backward()
            optimizer.step()
    seconds = time.perf_counter() - start
    model.eval()
    with torch.no_grad():
        right = model(data.x, data.edge_index).argmax(dim=1) == data.y
    return 100 * float(right[data.test_mask].float().mean()), seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", choices=["communities", "PubMed"], default="communities", help="(default: %(default)s)")
    parser.add_argument("--root", type=Path, default="data", help="where PyG keeps the data (default: %(default)s)")
    parser.add_argument("--num-parts", type=int, default=50, help="(default: %(default)s)")
    parser.add_argument("--parts-per-batch", type=int, default=10, help="(default: %(default)s)")
    parser.add_argument("--hidden-channels", type=int, default=32, help="(default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=20, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="two epochs, to see that it works")
    args = parser.parse_args()
    args.epochs = 2 if args.quick else args.epochs
    torch.manual_seed(args.seed)
    data = communities() if args.dataset == "communities" else Planetoid(args.root, "PubMed", split="full")[0]

    start = time.perf_counter()
    parts = ClusterData(data, args.num_parts)
    inside = int(parts.partition.partptr.diff().max())
    print(f"{args.num_parts} parts of at most {inside} nodes, in {time.perf_counter() - start:.1f} s")
    batches = ClusterLoader(parts, batch_size=args.parts_per_batch, shuffle=True)
    for name, loader in (("parts", batches), ("the whole graph", [data])):
        accuracy, seconds = train(loader, data, args)
        print(f"trained on {name}: test accuracy {accuracy:.1f} %, {seconds:.1f} s")


if __name__ == "__main__":
    main()
