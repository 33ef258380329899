"""Right arguments of every public function and class, by their names, drawn at random."""

import torch
from fuzz_raw import graph
from torch_geometric.data import Data
from torch_geometric.nn.pool.select import SelectOutput

import torch_gic
from torch_gic import GIC, Fields, GaussianAggregation, GICConv, GICNet, VIGMMPool, nn
from torch_gic.fields import bipartite_fields, edge_fields, receptive_fields, split_fields, trim_fields
from torch_gic.loader import ClusterData

PRINTED_FILTER = nn.GaussianFilter(4, 3, 1, 2, None)


class Inputs:
    """One graph, in all the forms in which it is passed."""

    def __init__(self, draw):
        self.draw = draw
        self.x, self.edges, self.weight, self.batch = graph(draw)
        self.n, self.scales, self.bound = self.x.size(0), draw.choice((1, 2, 3)), draw.choice((None, 3))
        self.weighted = {"edge_index": self.edges, "edge_weight": self.weight}
        self.whole = {**self.weighted, "batch": self.batch}
        self.made = {"num_scales": self.scales, "max_neighbors": self.bound}

    def pair(self):
        fields = receptive_fields(self.edges, num_nodes=self.n, num_scales=self.scales)
        return fields.index, fields.weight

    def with_nodes(self):
        while self.n == 0:
            self.__init__(self.draw)
        return self

    def trains(self, module):
        return module.train(self.draw.random() < 0.5)


def conv(g):
    settings = {"in_channels": 4, "out_channels": 3, "num_components": 2, **g.made, "hidden_channels": 3, "scale": 8.0}
    return g.draw.choice(
        (
            (g.trains(GICConv(4, 3, 2, g.scales, max_neighbors=g.bound)), {"x": g.x, **g.whole}),
            (GICConv(4, 3, 2, g.scales), {"x": g.x, "edge_index": g.edges, "fields": g.pair()}),
            (GICConv((4, 4), 3, 2), {"x": (g.x, g.x.clone()), **g.weighted}),
            (g.trains(GICConv(4, 3, 2, edge_dim=2)), {"x": g.x, **g.whole, "edge_attr": g.weight[:, None].repeat(1, 2)}),
            (_settings, settings),
        )
    )


def net(g):
    return g.trains(GICNet(4, 5, 2, jk=g.draw.choice((None, "cat")))), {"x": g.x, **g.weighted}


def network(g):
    architecture = g.draw.choice(("C(3)-P(0.5)-C(3)-P-FC(3)", "C(3)-C(3)", "C(3)-P"))
    return g.trains(GIC(4, 2, architecture, 2, num_scales=g.scales)), {"x": g.x, **g.whole}


def pool(g):
    pool = VIGMMPool(g.draw.choice((4, None)), g.draw.choice((0.5, 2, 1.0)), soft=g.draw.random() < 0.3)
    given = {"cluster": torch.arange(g.n)} if g.draw.random() < 0.5 else {}
    return g.trains(pool), {"x": g.x, **g.whole, **given}


def clusters(g):
    number = {"ratio": 0.3, "max_size": 5} if g.draw.random() < 0.5 else {"num_clusters": g.draw.choice((1, 3, 50))}
    return torch_gic.cluster, {**g.whole, **number, "num_nodes": g.n}


def fields(g):
    loops = g.draw.random() < 0.5
    return receptive_fields, {**g.whole, "num_nodes": g.n, **g.made, "add_self_loops": loops}


def parts(function):
    return lambda g: (function, {**dict(zip(("index", "weight"), g.pair(), strict=True)), "size": g.n, "count": 2})


PUBLIC = {
    "BoundedNorm": lambda g: (g.trains(nn.BoundedNorm(4)), {"x": g.x}),
    "OutlierClamp": lambda g: (g.trains(nn.OutlierClamp(4)), {"x": g.x}),
    "Cluster": lambda g: (_clustered, {"x": g.x, **g.weighted, "num_clusters": 2}),
    "ClusterConnect": lambda g: (_connect, {"cluster": torch.arange(g.n) // 2, "edge_index": g.edges, "edge_attr": g.weight}),
    "ClusterData": lambda g: (_loaded, {"x": g.with_nodes().x, "edge_index": g.edges, "num_parts": 1}),
    "Fields": parts(lambda index, weight, size, count: Fields.of((index, weight), (size, size))),
    "GIC": network,
    "GICConv": conv,
    "GICNet": net,
    "GaussianAggregation": lambda g: (GaussianAggregation(4, 3), {"x": g.x, "index": g.batch, "dim_size": 3}),
    "GaussianFilter": parts(lambda index, weight, size, count: _encode(PRINTED_FILTER, index, weight, size)),
    "GaussianMixture": parts(lambda index, weight, size, count: _encode(nn.GaussianMixture(4, 1, 2), index, weight, size)),
    "GaussianReadout": lambda g: (g.trains(nn.GaussianReadout(4, 2)), {"x": g.x, "batch": g.batch, "batch_size": 3}),
    "PreCoarsen": lambda g: (_coarsened, {"x": g.with_nodes().x, **g.weighted, "ratio": 0.5}),
    "ReceptiveFields": lambda g: (_transformed, {"x": g.x, **g.weighted, "num_scales": g.scales}),
    "VIGMMPool": pool,
    "VIGMMSelect": lambda g: (g.trains(nn.VIGMMSelect(4, 0.5)), {"x": g.x, **g.whole}),
    "bipartite_fields": lambda g: (bipartite_fields, {**g.weighted, "size": (g.n, g.n)}),
    "cluster": clusters,
    "edge_fields": lambda g: (edge_fields, {**g.whole, "size": g.n}),
    "receptive_fields": fields,
    "split_fields": parts(lambda index, weight, size, count: list(split_fields(_fields(index, weight, size), count))),
    "trim_fields": parts(lambda index, weight, size, count: trim_fields(_fields(index, weight, size), min(size, 2), count)),
    "walk_counts": lambda g: (torch_gic.walk_counts, {**g.weighted, "num_nodes": g.n, "num_scales": g.scales}),
}


def public(draw):
    """A public function and its arguments by name, right."""
    return PUBLIC[draw.choice(sorted(PUBLIC))](Inputs(draw))


def _fields(index, weight, size):
    return Fields.of((index, weight), (size, size))


def _encode(module, index, weight, size):
    return module(torch.randn(size, 4), _fields(index, weight[:, :1], size))


def _transformed(x, edge_index, edge_weight, num_scales):
    data = torch_gic.ReceptiveFields(num_scales)(Data(x=x, edge_index=edge_index, edge_weight=edge_weight))
    return GICConv(4, 3, 2, num_scales)(data.x, data.edge_index, fields=data.fields)


def _clustered(num_clusters, **data):
    return torch_gic.Cluster(num_clusters)(Data(**data)).cluster


def _coarsened(ratio, **data):
    return torch_gic.PreCoarsen(ratio)(Data(**data)).cluster_1


def _loaded(num_parts, **data):
    return ClusterData(Data(**data), num_parts)[0].x


def _connect(cluster, edge_index, edge_attr):
    nodes, count = torch.arange(cluster.numel()), int(cluster.max()) + 1 if cluster.numel() > 0 else 0
    return nn.ClusterConnect()(SelectOutput(nodes, cluster.numel(), cluster, count), edge_index, edge_attr).edge_attr


def _settings(**settings):
    return GICConv(**settings)(torch.randn(3, 4), torch.tensor([[0, 1], [1, 2]]))
