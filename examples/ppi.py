"""Multi-label classification of proteins (PPI). Trains on twenty graphs, tests on two unseen ones, and prints micro-F1.

Two recipes. `paper` has the setting of GraphSAGE, as in the paper: 25 and 10 neighbours are sampled around 512 seeds. Fields
are those of the sampled graph, normalised as in the whole graph. Validation and test are sampled in the same way.
It needs pyg-lib or torch-sparse.

`modern` takes whole graphs, with fields that were computed once, wider layers, and more epochs. Nothing is sampled. Features
have zero mean and unit variance on the training graphs.

PyG downloads PPI, or takes ppi.zip from --data-url. `--dataset circuits` trains on another set in the same format: analog
circuits (Kunal et al., DATE 2020). Its gana_ota_ppi_format.zip is always taken from --data-url. The test score is that of the
epoch with the best validation score.
"""

import argparse
import itertools

import torch
import torch.nn.functional as F
from common.nodes import add_arguments, check_sampler, load, micro_f1, parse, sampled_fields, standardise, train
from torch_geometric.data import Batch, Data
from torch_geometric.datasets import PPI
from torch_geometric.loader import DataLoader, NeighborLoader

from torch_gic import GIC, ReceptiveFields, walk_counts

NEIGHBORS = [25, 10]
FILES = {"PPI": "ppi.zip", "circuits": "gana_ota_ppi_format.zip"}
MIXTURE = {"num_scales": 1, "num_components": 5, "max_neighbors": None}  # the defaults of GICConv
RECIPES = {
    "paper": {
        "architecture": "C(64)-C(128)-C(256)-FC(256)",
        **MIXTURE,
        "epochs": 10,
        "batch_size": 512,
        "lr": 0.01,
    },
    "modern": {
        "architecture": "C(256)-C(256)-C(256)-FC(256)",
        **MIXTURE,
        "epochs": 100,
        "batch_size": 1,  # graphs
        "lr": 0.003,
    },
}


class Sampled:
    """Nodes of all graphs of a part with sampled neighbourhoods."""

    def __init__(self, graphs, args, shuffle):
        check_sampler()
        data = Batch.from_data_list(graphs)
        counts = walk_counts(data.edge_index, num_nodes=data.num_nodes, num_scales=args.num_scales)
        data = Data(x=data.x, edge_index=data.edge_index, y=data.y, walk_count=counts)
        self.loader = NeighborLoader(data, NEIGHBORS, batch_size=args.batch_size, shuffle=shuffle)

    @staticmethod
    def predict(model, batch):
        fields = sampled_fields(batch)
        return model(batch.x, batch.edge_index, fields=fields, num_seeds=batch.batch_size), batch.y[: batch.batch_size]


class Whole:
    """Whole graphs, with fields."""

    def __init__(self, graphs, args, shuffle):
        fields = ReceptiveFields(args.num_scales, max_neighbors=args.max_neighbors)
        self.loader = DataLoader([fields(graph) for graph in graphs], args.batch_size, shuffle=shuffle)

    @staticmethod
    def predict(model, batch):
        return model(batch.x, batch.edge_index, batch=batch.batch, fields=batch.fields), batch.y


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", choices=FILES, default="PPI", help="(default: %(default)s)")
    add_arguments(parser, RECIPES)
    args = parse(parser, RECIPES)
    if args.dataset == "circuits" and not args.data_url:
        parser.error("Expected --data-url with --dataset circuits: the folder of gana_ota_ppi_format.zip (got none)")
    torch.manual_seed(args.seed)

    splits = {"training": "train", "validation": "val", "test": "test"}
    graphs = {
        part: list(load(lambda name=name: PPI(args.root / args.dataset, name), PPI, FILES[args.dataset], args))
        for part, name in splits.items()
    }
    standardise(itertools.chain(*graphs.values()), torch.cat([graph.x for graph in graphs["training"]]))
    make = Sampled if args.recipe == "paper" else Whole
    parts = {name: make(part, args, shuffle=name == "training") for name, part in graphs.items()}

    first = graphs["training"][0]
    mixture = {name: getattr(args, name) for name in MIXTURE}
    model = GIC(first.num_features, first.y.size(1), args.architecture, **mixture).to(args.device)

    def loss(batch):
        out, y = parts["training"].predict(model, batch)
        return F.binary_cross_entropy_with_logits(out, y), y.size(0)

    @torch.no_grad()
    def evaluate(name):
        out = [parts[name].predict(model, batch.to(args.device)) for batch in parts[name].loader]
        return micro_f1(*(torch.cat(tensors) for tensors in zip(*out, strict=True)))

    train(args, model, parts["training"].loader, loss, evaluate)


if __name__ == "__main__":
    main()
