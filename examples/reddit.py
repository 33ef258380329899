"""Communities of Reddit posts: 232,965 nodes, 114.6 million edges, 41 classes, trained on samples, by micro-F1.

Two recipes. `paper` has the setting of GraphSAGE, as in the paper: 25 and 10 neighbours are sampled around 512 seeds. Fields
are those of the sampled graph, normalised as in the whole graph. Validation and test are sampled in the same way.

`modern` computes the fields of the whole graph once, the --max-neighbors strongest members of each. A batch holds the fields
of its seeds and of their members, with the weights of the whole graph: what is trained is what is tested, layer by layer.

`--loader cluster` trains on parts of the graph that `torch_gic.cluster` cuts out, with the fields of these parts; tested as by
`modern`.

The first two need pyg-lib or torch-sparse to sample. PyG downloads the data, or takes reddit.zip from --data-url. Features
have zero mean and unit variance on the training nodes. The test score is that of the epoch with the best validation score.
"""

import argparse

import torch
import torch.nn.functional as F
from common.nodes import add_arguments, check_sampler, load, micro_f1, parse, sampled_fields, standardise, train
from torch_geometric.data import Data
from torch_geometric.datasets import Reddit
from torch_geometric.loader import ClusterLoader, NeighborLoader

from torch_gic import GIC, receptive_fields, walk_counts
from torch_gic.loader import ClusterData
from torch_gic.nn.models.architecture import parse_architecture

NEIGHBORS = [25, 10]
PARTS, PARTS_OF_A_BATCH = 1500, 20
MIXTURE = {"num_scales": 1, "num_components": 5, "max_neighbors": None}  # the defaults of GICConv
RECIPES = {
    "paper": {
        "architecture": "C(64)-C(128)-FC(256)",
        **MIXTURE,
        "epochs": 10,
        "batch_size": 512,
        "lr": 0.01,
    },
    "modern": {
        "architecture": "C(128)-C(128)-FC(256)",
        **MIXTURE,
        "max_neighbors": 16,  # a post has 490 neighbours: two layers would see the whole graph
        "epochs": 30,
        "batch_size": 1024,
        "lr": 0.003,
    },
}


def field_graph(data, args):
    """The fields of the whole graph as edges with attributes, for a loader to cut out those of a batch."""
    fields = receptive_fields(
        data.edge_index, num_nodes=data.num_nodes, num_scales=args.num_scales, max_neighbors=args.max_neighbors
    )
    return Data(x=data.x, y=data.y, edge_index=fields.index, edge_attr=fields.weight)


def counted_graph(data, args):
    """The graph, with the normalisers of its fields."""
    counts = walk_counts(data.edge_index, num_nodes=data.num_nodes, num_scales=args.num_scales)
    return Data(x=data.x, y=data.y, edge_index=data.edge_index, walk_count=counts)


def predict(model, batch):
    """Of the seeds of a sample, or of the training nodes of a part of the graph."""
    if "batch_size" not in batch:
        return model(batch.x, batch.edge_index)[batch.train_mask], batch.y[batch.train_mask]
    fields = sampled_fields(batch) if batch.edge_attr is None else (batch.edge_index, batch.edge_attr)
    out = model(batch.x, batch.edge_index, fields=fields, num_seeds=batch.batch_size)
    return out, batch.y[: batch.batch_size]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser, RECIPES)
    parser.add_argument("--loader", choices=["neighbor", "cluster"], default="neighbor", help="(default: %(default)s)")
    args = parse(parser, RECIPES)
    if args.loader == "neighbor":
        check_sampler()
    torch.manual_seed(args.seed)

    dataset = load(lambda: Reddit(args.root / "Reddit"), Reddit, "reddit.zip", args)
    data = dataset[0]
    standardise([data], data.x[data.train_mask])
    masks = {"training": data.train_mask, "validation": data.val_mask, "test": data.test_mask}
    by_fields = args.recipe == "modern" or args.loader == "cluster"
    fields = field_graph(data, args) if by_fields else None
    sampled = fields or counted_graph(data, args)
    num_layers = sum(layer.kind == "C" for layer in parse_architecture(args.architecture))
    if args.loader == "cluster":
        parts = ClusterData(data, min(PARTS, data.num_nodes // 10))
        training = ClusterLoader(parts, batch_size=PARTS_OF_A_BATCH, shuffle=True)
    else:
        neighbors = NEIGHBORS if fields is None else [-1] * num_layers  # all members, for each layer
        training = NeighborLoader(sampled, neighbors, masks["training"], batch_size=args.batch_size, shuffle=True)

    mixture = {name: getattr(args, name) for name in MIXTURE}
    model = GIC(dataset.num_features, dataset.num_classes, args.architecture, **mixture).to(args.device)

    def loss(batch):
        out, y = predict(model, batch)
        return F.cross_entropy(out, y), y.numel()

    @torch.no_grad()
    def evaluate(name):
        if fields is not None:
            out = model.inference(data.x, data.edge_index, fields=(fields.edge_index, fields.edge_attr))
            return micro_f1(out[masks[name]], data.y[masks[name]])
        loader = NeighborLoader(sampled, NEIGHBORS, masks[name], batch_size=args.batch_size)
        pairs = [predict(model, batch.to(args.device)) for batch in loader]
        return micro_f1(*(torch.cat(tensors) for tensors in zip(*pairs, strict=True)))

    train(args, model, training, loss, evaluate)


if __name__ == "__main__":
    main()
