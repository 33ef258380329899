"""The poolings that networks are compared with.

A pooling is a module that is called as `pool(x, edge_index, edge_weight, batch)` and gives the same four of the coarse graphs
and, fifth, how it selected them. If it has to be trained by more than the task, its `auxiliary_loss` is the loss of the last
call.
"""

import math

import torch
from torch_geometric.nn.pool.select import SelectOutput
from torch_geometric.utils import cumsum

from torch_gic import VIGMMPool
from torch_gic.nn.pool.vigmm_select import VIGMMSelect


class TGPool(torch.nn.Module):
    """A pooling of Torch Geometric Pool with its own defaults: most remove self-loops, dense ones normalise by degrees.

    Edges without weights get ones, so that the weights of coarse edges are sums, as those of VIGMMPool are. Dense poolings
    (mincut, dmon, diffpool, justbalance) have one number of clusters for all graphs: ratio times the mean number of nodes of
    the training graphs, rounded up. At the second level it is ratio times this. Others choose by themselves how
    much remains, whatever the ratio: graclus and ndp about half of the nodes, kmis an independent set. topk keeps the
    ratio.
    """

    def __init__(self, name, in_channels, ratio, mean_size):
        super().__init__()
        from tgp.poolers import get_pooler  # optional: the other poolings do without

        clusters = math.ceil(ratio * mean_size)
        self.pool = get_pooler(name, in_channels=in_channels, ratio=ratio, k=clusters, sparse_output=True)
        self.auxiliary_loss = 0

    def forward(self, x, edge_index, edge_weight=None, batch=None):
        if edge_weight is None:
            edge_weight = x.new_ones(edge_index.size(1))
        out = self.pool(x=x, adj=edge_index, edge_weight=edge_weight, batch=batch)
        self.auxiliary_loss = sum(out.loss.values()) if out.has_loss else 0
        return out.x, out.edge_index, out.edge_weight, out.batch, out.so


class PartitionSelect(VIGMMSelect):
    """In place of the select of VIGMMPool: the same number of clusters from another rule, all else stays as it is."""

    def forward(self, x, edge_index, edge_weight, batch):
        edge_weight = x.new_ones(edge_index.size(1)) if edge_weight is None else edge_weight
        size = torch.bincount(batch)
        num_clusters = (self.ratio * size.double()).ceil().long()
        cluster = self.partition(edge_index, edge_weight, batch, size, num_clusters) + cumsum(num_clusters)[batch]
        return SelectOutput(torch.arange(x.size(0)), x.size(0), cluster, int(num_clusters.sum()), x.new_ones(x.size(0)))


class RandomSelect(PartitionSelect):
    """Clusters of almost equal size, drawn anew in every call: what any clustering has to beat."""

    def partition(self, edge_index, edge_weight, batch, size, num_clusters):
        order = (batch + torch.rand(batch.numel(), dtype=torch.float64)).argsort()  # graph by graph, random inside
        rank = torch.empty_like(order)
        rank[order] = torch.arange(order.numel())
        return (rank - cumsum(size)[batch]) % num_clusters[batch]


class MetisSelect(PartitionSelect):
    """Clusters of almost equal size with few edges between them, from METIS."""

    def partition(self, edge_index, edge_weight, batch, size, num_clusters):
        import pymetis  # optional: the other poolings do without

        edge_weight = edge_weight.detach()[edge_index[0] != edge_index[1]].round().clamp(min=1).long()
        edge_index = edge_index[:, edge_index[0] != edge_index[1]]
        order = edge_index[0].argsort()
        start = cumsum(torch.bincount(edge_index[0], minlength=batch.numel()))
        (neighbor, weight), parts = (edge_index[1][order], edge_weight[order]), []
        for first, n, k in zip(cumsum(size)[:-1].tolist(), size.tolist(), num_clusters.tolist(), strict=True):
            begin, end = int(start[first]), int(start[first + n])
            graph = (start[first : first + n + 1] - begin, neighbor[begin:end] - first, weight[begin:end])
            rows, neighbors, weights = (part.tolist() for part in graph)
            part = list(range(n)) if k == n else [0] * n
            if 1 < k < n:
                _, part = pymetis.part_graph(k, pymetis.CSRAdjacency(rows, neighbors), eweights=weights, recursive=True)
            parts.append(_fill_empty(torch.tensor(part), k))
        return torch.cat(parts)


def _fill_empty(part, num_clusters):
    """METIS may leave clusters empty in small graphs: each of them gets a node of the largest cluster."""
    while (empty := torch.bincount(part, minlength=num_clusters) == 0).any():
        node = int((part == part.bincount().argmax()).nonzero()[0])
        part[node] = int(empty.nonzero()[0])
    return part


def _with_select(select):
    def make(in_channels, ratio, mean_size):
        pool = VIGMMPool(in_channels, ratio)
        pool.select = select(in_channels, ratio)
        return pool

    return make


def _from_tgp(name):
    return lambda in_channels, ratio, mean_size: TGPool(name, in_channels, ratio, mean_size)


POOLERS = {  # name: factory(in_channels, ratio, mean_size); frozen: VIGMMPool without a learnt influence
    "VIGMMPool": lambda in_channels, ratio, mean_size: VIGMMPool(in_channels, ratio),
    "frozen": lambda in_channels, ratio, mean_size: VIGMMPool(None, ratio),
    "laplacian": lambda in_channels, ratio, mean_size: VIGMMPool(in_channels, ratio, affinity="laplacian"),
    "random": _with_select(RandomSelect),
    "metis": _with_select(MetisSelect),
    "mincut": _from_tgp("mincut"),
    "dmon": _from_tgp("dmon"),
    "diffpool": _from_tgp("diff"),
    "justbalance": _from_tgp("jb"),
    "graclus": _from_tgp("graclus"),
    "ndp": _from_tgp("ndp"),
    "kmis": _from_tgp("kmis"),
    "topk": _from_tgp("topk"),
}
