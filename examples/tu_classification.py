"""Graph classification with the GIC network on any TUDataset, such as MUTAG: a plain training loop to start from.

PyG downloads the data set, or takes NAME.zip from --data-url. Node features are the one-hot label and the degree, or the
degree alone where there are no labels. A tenth of the graphs chooses the epoch, another tenth is tested once: on a small data
set that says little. For ten folds and other networks see `python -m benchmark.graphs`.
"""

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F
from torch_geometric.datasets import TUDataset
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import BaseTransform, Compose
from torch_geometric.utils import degree
from tqdm import tqdm

from torch_gic import GIC, ReceptiveFields
from torch_gic.nn.models.architecture import DEFAULT_ARCHITECTURE


class AddDegree(BaseTransform):
    """Appends the logarithm of the degree to the features: degrees differ by orders of magnitude."""

    def forward(self, data):
        column = degree(data.edge_index[1], data.num_nodes).log1p().unsqueeze(1)
        data.x = column if data.x is None else torch.cat([data.x, column], dim=1)
        return data


def load(args):
    if args.data_url:
        TUDataset.url = args.data_url.rstrip("/")
    transform = Compose([AddDegree(), ReceptiveFields(args.num_scales)])  # once: PyG keeps the result
    try:
        return TUDataset(args.root / f"degree-fields{args.num_scales}", args.dataset, pre_transform=transform)
    except Exception as error:  # PyG and the file systems behind it raise what they like
        raise SystemExit(
            f"Could not get {args.dataset} from {TUDataset.url}: {error}\n"
            "Check the name and the network, or give the folder of its zip file: --data-url file:///path/to/folder"
        ) from error


def predict(model, data):
    return model(data.x, data.edge_index, batch=data.batch, batch_size=data.num_graphs, fields=data.fields)


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    correct = sum(int((predict(model, data).argmax(dim=1) == data.y).sum()) for data in loader)
    return correct / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)

    def add(name, text, **options):
        parser.add_argument(name, help=f"{text} (default: %(default)s)", **options)

    add("--dataset", "name in the TU collection", default="MUTAG")
    add("--root", "where PyG keeps the data", type=Path, default=Path("data"))
    parser.add_argument("--data-url", help="folder with NAME.zip, as http(s):// or file:// (default: PyG's own)")
    add("--architecture", "the network, in the paper's notation", default=DEFAULT_ARCHITECTURE)
    add("--num-scales", "K", type=int, default=1)
    add("--num-components", "C", type=int, default=5)
    add("--epochs", "epochs", type=int, default=50)
    add("--batch-size", "graphs per batch", type=int, default=32)
    add("--lr", "learning rate, which falls to zero along a cosine", type=float, default=1e-3)
    add("--seed", "seed of weights, parts and batches", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    dataset = load(args).shuffle()
    tenth = max(1, len(dataset) // 10)
    parts = dataset[2 * tenth :], dataset[tenth : 2 * tenth], dataset[:tenth]
    training, validation, test = (DataLoader(part, args.batch_size, shuffle=part is parts[0]) for part in parts)

    mixture = {"num_scales": args.num_scales, "num_components": args.num_components}
    model = GIC(dataset.num_features, dataset.num_classes, args.architecture, **mixture)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    best, tested = -1.0, 0.0
    for epoch in (progress := tqdm(range(1, args.epochs + 1), unit="epoch")):
        model.train()
        for data in training:
            optimizer.zero_grad()
            F.cross_entropy(predict(model, data), data.y).backward()
            optimizer.step()
        scheduler.step()
        validated = accuracy(model, validation)
        if validated > best:
            best, chosen, tested = validated, epoch, accuracy(model, test)
        progress.set_postfix_str(f"validation {validated:.1%}")
    sizes = ", ".join(str(len(part)) for part in parts)
    print(f"{args.dataset}: {len(dataset)} graphs ({sizes} to train, choose and test)")
    print(f"test accuracy {tested:.1%}, at epoch {chosen}, which validation graphs chose ({best:.1%})")


if __name__ == "__main__":
    main()
