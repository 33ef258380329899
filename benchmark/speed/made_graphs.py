"""A graph of the size and degree of Reddit, with planted classes, since the real one cannot be had everywhere."""

import torch
from torch_geometric.data import Data

NODES, EDGES, FEATURES, CLASSES = 232_965, 114_615_892, 602, 41
INSIDE = 0.8  # share of the edges that stay in a class
TRAINED = 0.66  # share of the nodes to train on, as of Reddit
NOISE = 8.0  # against class means of unit variance


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
