"""Cluster-wise training on a planted graph: GIC and GraphSAGE get the same clusters."""

import time

import torch
import torch.nn.functional as F
from torch_geometric.loader import ClusterLoader
from torch_geometric.nn import SAGEConv
from torch_geometric.nn import Sequential as GraphSequential

from torch_gic import GIC
from torch_gic.loader import ClusterData

from ..common.tables import print_table
from .made_graphs import CLASSES, planted_graph

SIZE, QUICK_SIZE = (50_000, 2_000_000, 602), (2000, 40_000, 16)  # nodes, edges, features
PARTS, PARTS_OF_A_BATCH, CHANNELS, EPOCHS = 100, 5, 64, 2


def measure_clusters(num_nodes, num_edges, num_features):
    """Both networks train on each batch in turn. Accuracy is that of the nodes not trained on, in the last epoch."""
    data = planted_graph(num_nodes, num_edges, num_features)
    start = time.perf_counter()
    parts = ClusterData(data, min(PARTS, num_nodes // 20))
    clustering = time.perf_counter() - start
    torch.manual_seed(0)
    loader = ClusterLoader(parts, batch_size=PARTS_OF_A_BATCH, shuffle=True)
    sage = [
        (SAGEConv(num_features, CHANNELS), "x, edge_index -> x"),
        torch.nn.ReLU(),
        (SAGEConv(CHANNELS, CLASSES), "x, edge_index -> x"),
    ]
    models = {
        "GraphSAGE": GraphSequential("x, edge_index", sage),
        "GIC": GIC(num_features, CLASSES, f"C({CHANNELS})-C({CHANNELS})"),
    }
    optimizers = {name: torch.optim.AdamW(model.parameters(), lr=0.003) for name, model in models.items()}
    seconds, trained = dict.fromkeys(models, 0.0), 0
    for _ in range(EPOCHS):
        right, tested = dict.fromkeys(models, 0), 0
        for batch in loader:
            trained += int(batch.train_mask.sum())
            tested += int((~batch.train_mask).sum())
            for name, model in models.items():
                start = time.perf_counter()
                optimizers[name].zero_grad()
                out = model(batch.x, batch.edge_index)
                F.cross_entropy(out[batch.train_mask], batch.y[batch.train_mask]).backward()
                optimizers[name].step()
                seconds[name] += time.perf_counter() - start
                right[name] += int((out.argmax(dim=1) == batch.y)[~batch.train_mask].sum())
    return {
        "seconds of clustering": clustering,
        "nodes per second": {name: trained / seconds[name] for name in models},
        "accuracy": {name: right[name] / tested for name in models},
    }


def print_clusters(args, results):
    size = QUICK_SIZE if args.quick else SIZE
    point = results.get(f"clusters/{size}", measure_clusters, *size)
    rows = [
        [name, f"{speed:.0f}", f"{speed / point['nodes per second']['GraphSAGE']:.2f}", f"{point['accuracy'][name]:.1%}"]
        for name, speed in point["nodes per second"].items()
    ]
    print_table(
        f"Clusters of {size[0]} nodes, {size[1]} edges, {size[2]} features: {EPOCHS} epochs of {PARTS} parts,"
        f" {PARTS_OF_A_BATCH} in a batch; made in {point['seconds of clustering']:.1f} s",
        ["", "nodes to train on per second", "of GraphSAGE", "accuracy of the other nodes"],
        rows,
    )
