"""Mini-batches of a large graph: clusters beside sampled neighbours."""

import functools
import time

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.loader import ClusterLoader, NeighborLoader
from torch_geometric.nn import GraphSAGE

from torch_gic.loader import ClusterData

from ..nodes.runs import load as load_nodes
from ..speed.made_graphs import planted_graph
from .timed import train_for

DATASETS = {"PubMed": 30, "planted": 240}  # name: seconds
NETWORKS = {"clusters": True, "sampled neighbours": False}
NEIGHBORS, SEEDS, WIDTH, DROPOUT = [25, 10], 512, 64, 0.5
PART, PARTS_OF_A_BATCH = 500, 10  # nodes of a part
JUDGED = 2048  # nodes at most that validate, and that test: always with the same sampled neighbours


@functools.lru_cache(maxsize=1)
def load(source, name):
    """A graph whose nodes are for training (0), validation (1) or test (2), by `part`. Of PubMed all train but those that the
    published split judges by: 60 nodes would be less than a batch."""
    if name == "planted":
        data, generator = planted_graph(), torch.Generator().manual_seed(1)
        data.part = torch.where(data.train_mask, 0, 1 + torch.randint(2, (data.num_nodes,), generator=generator))
        del data.train_mask
        return data
    training, *judged = load_nodes(*source, name).splits[0]
    part = torch.zeros_like(training.y)
    for number, chosen in enumerate(judged, start=1):
        part[chosen.nodes] = number
    x = training.x.to_dense() if training.x.is_sparse else training.x
    return Data(x=x, edge_index=training.edge_index, y=training.y, part=part)


def run(source, job):
    data = load((source.root, source.data_url), job["dataset"])
    torch.manual_seed(job["run"])
    judged = [judged_batches(data, part) for part in (1, 2)]
    start = time.process_time()
    loader = cluster_loader(data) if NETWORKS[job["network"]] else neighbor_loader(data, (data.part == 0).nonzero().view(-1))
    ahead = time.process_time() - start
    model = GraphSAGE(data.num_features, WIDTH, len(NEIGHBORS), int(data.y.max()) + 1, dropout=DROPOUT)

    def loss(batch):
        counts = batch.part == 0
        counts[getattr(batch, "batch_size", batch.num_nodes) :] = False  # of samples only the seeds, which come first
        return F.cross_entropy(model(batch.x, batch.edge_index)[counts], batch.y[counts])

    def judge(batches=judged[0]):
        right = [(model(b.x, b.edge_index).argmax(dim=1) == b.y)[: b.batch_size] for b in batches]
        return float(torch.cat(right).double().mean())

    def batches():
        return (batch for batch in loader if bool((batch.part == 0).any()))

    result = train_for(job["seconds"], model, batches, loss, judge, ahead)
    with torch.no_grad():
        return result | {"metric": "accuracy", "test": judge(judged[1])}


def cluster_loader(data):
    return ClusterLoader(ClusterData(data, max(1, data.num_nodes // PART)), batch_size=PARTS_OF_A_BATCH, shuffle=True)


def neighbor_loader(data, seeds, shuffle=True):
    return NeighborLoader(data, NEIGHBORS, seeds, batch_size=SEEDS, shuffle=shuffle)


def judged_batches(data, part):
    nodes = (data.part == part).nonzero().view(-1)
    chosen = nodes[torch.randperm(nodes.numel(), generator=torch.Generator().manual_seed(part))[:JUDGED]]
    return list(neighbor_loader(data, chosen, shuffle=False))
