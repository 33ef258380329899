"""Data sets of PyG, from its own sources or a folder, and graphs made up for benchmarks of speed."""

import math
from contextlib import contextmanager

import numpy as np
import torch
import torch_geometric.datasets as pyg
from filelock import FileLock
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.utils import to_undirected

SOURCES = {  # class of PyG: the address below --data-url
    "TUDataset": "tudataset",
    "MoleculeNet": "moleculenet/{}",
    "Planetoid": "planetoid",
    "HeterophilousGraphDataset": "heterophilous",
    "Twitch": "twitch",
    "Amazon": "amazon_coauthor/",
    "Coauthor": "amazon_coauthor/",
    "Actor": "actor",
}
# A planted graph has the size and degree of Reddit, which cannot be had everywhere.
NODES, EDGES, FEATURES, CLASSES = 232_965, 114_615_892, 602, 41
INSIDE = 0.8  # share of the edges that stay in a class
TRAINED = 0.66  # share of the nodes to train on, as of Reddit
NOISE = 8.0  # against class means of unit variance
ENDS = 4  # edges of a new node of the power-law graph


@contextmanager
def loading(args, kind, name):
    """Gives the class of PyG with its address, while no other process loads this data set."""
    dataset = getattr(pyg, kind)
    if args.data_url:
        dataset.url = f"{args.data_url.rstrip('/')}/{SOURCES[kind]}"
    try:
        args.root.mkdir(parents=True, exist_ok=True)
        with FileLock(args.root / f"{name}.lock"):  # of two commands at a time, one unpacks and the other waits
            yield dataset
    except Exception as error:  # PyG and the file systems behind it raise what they like
        raise SystemExit(
            f"Could not get {name} from {dataset.url}: {error}\n"
            f"Check the name and the network, or give the folder that holds {SOURCES[kind].split('/')[0]}:"
            " --data-url file:///path/to/folder"
        ) from error


def load_tu(args, name, **options):
    """A data set of the TU collection."""
    with loading(args, "TUDataset", name) as dataset:
        return dataset(args.root / "TU", name, **options)


def load_batch(args, name):
    """Random graphs of it, on the device that is asked for."""
    torch.manual_seed(0)
    with torch.device("cpu"):
        batch = next(iter(DataLoader(load_tu(args, name), batch_size=args.graphs, shuffle=True)))
    return batch.to(args.device)


def planted_graph(num_nodes=NODES, num_edges=EDGES, num_features=FEATURES, seed=0):
    """Both directions of `num_edges / 2` random edges. One end of each is drawn from a heavy tail, as in social networks. Few
    edges are drawn twice; they are kept, and count twice. Edges are sorted by their target, as samplers want them."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(CLASSES, (num_nodes,), generator=generator)
    members = y.argsort()  # the nodes by class
    size = torch.bincount(y, minlength=CLASSES)
    start = size.cumsum(0) - size
    count = num_edges // 2
    edge_index = torch.empty(2, 2 * count, dtype=torch.long)
    for first in range(0, count, 10_000_000):  # pieces, which bound the memory for random numbers
        last = min(first + 10_000_000, count)
        random = torch.rand(3, last - first, generator=generator)
        source = (random[0].square() * num_nodes).long()  # small numbers are hubs
        own = start[y[source]] + (random[1] * size[y[source]]).long()
        target = torch.where(random[2] < INSIDE, members[own], (random[1] * num_nodes).long())
        edge_index[0, first:last], edge_index[1, first:last] = source, target
    edge_index[:, count:] = edge_index[:, :count].flip(0)
    edge_index = edge_index[:, edge_index[1].argsort(stable=True)]
    means = torch.randn(CLASSES, num_features, generator=generator)
    x = torch.randn(num_nodes, num_features, generator=generator).mul_(NOISE).add_(means[y])
    x /= (1 + NOISE**2) ** 0.5  # unit variance
    return Data(x=x, edge_index=edge_index, y=y, train_mask=torch.rand(num_nodes, generator=generator) < TRAINED)


def grid(num_nodes):
    """A square with four neighbours to a node."""
    side = round(math.sqrt(num_nodes))
    node = torch.arange(side * side).view(side, side)
    right = torch.stack([node[:, :-1].flatten(), node[:, 1:].flatten()])
    down = torch.stack([node[:-1].flatten(), node[1:].flatten()])
    return Data(edge_index=to_undirected(torch.cat([right, down], dim=1)), num_nodes=side * side)


def power_law(num_nodes):
    """Preferential attachment (Barabási and Albert): a new node copies ends of earlier edges, in linear time.

    Slot 2e is the new node of edge e and slot 2e + 1 its target, which is itself a slot: chains of them are followed for
    all edges at once. The first edges make a star around node 0; what is drawn twice becomes one edge.
    """
    rng = np.random.default_rng(0)
    source = np.concatenate([np.arange(1, ENDS + 1), np.repeat(np.arange(ENDS + 1, num_nodes), ENDS)])
    slot = np.ones_like(source)
    slot[ENDS:] = rng.integers(0, 2 * ENDS * (source[ENDS:] - ENDS))
    while (chained := (slot % 2 == 1) & (slot >= 2 * ENDS)).any():
        slot[chained] = slot[slot[chained] // 2]
    target = np.where(slot % 2 == 0, source[slot // 2], 0)
    return Data(edge_index=to_undirected(torch.from_numpy(np.stack([source, target]))), num_nodes=num_nodes)
