"""Does a layer work at the first try, whatever the unit of the features is? The network of the README on Cora.

Two convolutions with a ReLU between them, nothing else: no encoder, no normalisation, no dropout. Features as they come, and
times 1e-3 and 1e3. Adam with a learning rate of 0.01 and a weight decay of 5e-4; validation nodes choose the epoch. Runs are
lines of units/DATASET.jsonl in the output folder, and are not made again.
"""

import torch
import torch.nn.functional as F
from torch_geometric.nn import GCNConv, SAGEConv

from torch_gic import GICConv

from ..common.command import add_run_arguments, make_parser, parse, print_table
from ..common.records import by_network, make_missing
from ..common.statistics import mean_and_spread
from .runs import load

UNITS = (1e-3, 1.0, 1e3)
WIDTH = 64
LAYERS = {
    "GICConv": GICConv,
    "GICConv, C = 1": lambda i, o: GICConv(i, o, num_components=1),
    "GCN": lambda i, o: GCNConv(i, o, cached=True),
    "GraphSAGE": SAGEConv,
}


class Net(torch.nn.Module):
    """That of the README."""

    def __init__(self, make, in_channels, out_channels):
        super().__init__()
        self.first, self.second = make(in_channels, WIDTH), make(WIDTH, out_channels)

    def forward(self, x, edge_index, **fields):
        return self.second(self.first(x, edge_index, **fields).relu(), edge_index, **fields)


def run(source, job):
    data = load(source.root, source.data_url, job["dataset"])
    training, validation, test = data.splits[0]
    x = job["unit"] * training.x.to_dense()
    torch.manual_seed(job["seed"])
    model = Net(LAYERS[job["network"]], data.num_features, data.num_classes)
    first, given = model.first, {}
    if isinstance(first, GICConv):
        given["fields"] = first.fields(x, training.edge_index)
    optimizer, best = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4), (-1.0, 0.0)
    for _ in range(job["epochs"]):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(x, training.edge_index, **given)[training.nodes], training.y[training.nodes]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            right = (model(x, training.edge_index, **given).argmax(dim=1) == training.y).double()
        best = max(best, (float(right[validation.nodes].mean()), float(right[test.nodes].mean())), key=lambda pair: pair[0])
    return {"validation": best[0], "test": best[1]}


def parse_args():
    parser = make_parser("nodes.units", __doc__)
    parser.add_argument("--dataset", choices=["Cora", "CiteSeer", "PubMed"], default="Cora", help="(default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=10, help="(default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=200, help="(default: %(default)s)")
    add_run_arguments(parser, "one seed, five epochs")
    return parse(parser, {"seeds": 1, "epochs": 5}, "seeds", "epochs", "jobs")


def main():
    args = parse_args()
    load(args.root, args.data_url, args.dataset)  # an error ends the command, and not a process of it
    jobs = [
        {"dataset": args.dataset, "network": network, "unit": unit, "epochs": args.epochs, "seed": seed}
        for seed in range(args.seeds)
        for network in LAYERS
        for unit in UNITS
    ]
    results = make_missing(run, args, jobs, args.output / "units" / f"{args.dataset}.jsonl", args.jobs)
    rows = []
    for network, runs in by_network(zip(jobs, results, strict=True)).items():
        found = [[100 * result["test"] for job, result in runs if job["unit"] == unit] for unit in UNITS]
        rows.append([network, *(mean_and_spread(scores) if scores else "-" for scores in found)])
    print_table(f"{args.dataset}: test accuracy by the unit of the features", ["", *(f"times {u:g}" for u in UNITS)], rows)


if __name__ == "__main__":
    main()
