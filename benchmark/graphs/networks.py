"""The networks of the benchmarks of graphs, by name: GIC, its variants and peers, poolings, and what the paper compares with.

Each is a factory of the graphs, the numbers of the training graphs, and the `Shape`. The body follows a two-layer encoder, the
same for all, or stands alone. The networks of the paper's tables have the printed widths instead, and no encoder.
"""

import itertools
import math
from typing import NamedTuple

import torch
from torch_geometric.nn import ChebConv, GCNConv, Linear
from torch_geometric.utils import cumsum

from torch_gic import GIC, GICConv, VIGMMPool
from torch_gic.nn.models.architecture import PRINTED as PRINTED_ARCHITECTURE
from torch_gic.nn.models.architecture import parse_architecture

from ..common.layers import LAYERS, Encoder
from ..pooling.select import POOLERS
from .blocks import Block, BlockNetwork, WeightedGIN

RATIO = 0.5  # of all poolings
PRINTED_WIDTHS = [int(size) for kind, size in parse_architecture(PRINTED_ARCHITECTURE) if kind == "C"]
HIDDEN = 256  # of the printed fully connected layer


class Shape(NamedTuple):
    width: int = 64
    layers: int = 3
    dropout: float = 0.0
    encoder: bool = True

    def encode(self, in_channels):
        """The encoder, and how many channels the body takes."""
        return (Encoder(in_channels, self.width), self.width) if self.encoder else (torch.nn.Identity(), in_channels)


class Encoded(torch.nn.Module):
    """An encoder of single nodes, or none, and the body behind it."""

    def __init__(self, encoder, body):
        super().__init__()
        self.encoder, self.body = encoder, body

    def forward(self, data):
        x = self.encoder(data.x)
        if not isinstance(self.body, GIC):
            return self.body(x, data)
        return self.body(x, data.edge_index, batch=data.batch, batch_size=data.size, fields=data.fields)


class FlatGIC(torch.nn.Module):
    """GIC without coarsening, as the paper describes it: zero nodes are added up to a fixed size, and the features of all
    nodes, in the order in which they come, are what is classified."""

    def __init__(self, in_channels, num_outputs, num_nodes):
        super().__init__()
        self.num_nodes = num_nodes
        self.gic = GIC(in_channels, PRINTED_WIDTHS[-1], "-".join(f"C({width})" for width in PRINTED_WIDTHS))
        self.classifier = torch.nn.Sequential(
            Linear(num_nodes * PRINTED_WIDTHS[-1], HIDDEN), torch.nn.ReLU(), Linear(HIDDEN, num_outputs)
        )

    def forward(self, x, data):
        x = self.gic(x, data.edge_index, batch=data.batch, fields=data.fields)
        first = cumsum(torch.bincount(data.batch, minlength=data.size))[data.batch]
        padded = x.new_zeros(data.size * self.num_nodes, x.size(1))
        padded[data.batch * self.num_nodes + torch.arange(data.batch.numel()) - first] = x
        return self.classifier(padded.view(data.size, -1))


def architecture(shape, ratio=None):
    """Convolutions of one width with coarsenings between them, in the paper's notation; without a ratio there are none."""
    between = f"-P({ratio})-" if ratio else "-"
    return between.join([f"C({shape.width})"] * shape.layers) + f"-P-FC({shape.width})"


def _gic(make=GIC, ratio=None, **options):
    """GIC behind the encoder; what is not said is the default of the class."""

    def network(graphs, training, shape):
        encoder, channels = shape.encode(graphs.num_features)
        layers = architecture(shape, ratio)
        return Encoded(encoder, make(channels, graphs.num_outputs, architecture=layers, dropout=shape.dropout, **options))

    return network


def _printed_gic(make=GIC, **options):
    """GIC with the layers of the paper, of the features themselves."""
    return lambda graphs, training, shape: Encoded(
        torch.nn.Identity(), make(graphs.num_features, graphs.num_outputs, **options)
    )


def _flat(graphs, training, shape):
    return Encoded(torch.nn.Identity(), FlatGIC(graphs.num_features, graphs.num_outputs, int(graphs.sizes().max())))


def _peer(name):
    def network(graphs, training, shape):
        about, widths = graphs.about(training), [shape.width] * shape.layers
        encoder, channels = shape.encode(graphs.num_features)
        pairs = itertools.pairwise([channels, *widths])
        blocks = [Block(LAYERS[name](i, o, about), o) for i, o in pairs]
        size = graphs.mean_size(training)
        return Encoded(encoder, BlockNetwork(blocks, widths, graphs.num_outputs, shape.width, size, shape.dropout))

    return network


def _pooled(pooler):
    """GIN with a pooling after each layer but the last. Poolings are made last: with the same seed, all else starts alike."""

    def network(graphs, training, shape):
        widths, size = [shape.width] * shape.layers, graphs.mean_size(training)
        encoder, channels = shape.encode(graphs.num_features)
        pairs = itertools.pairwise([channels, *widths])
        blocks = [Block(WeightedGIN(i, o), o, weighted=True) for i, o in pairs]
        body = BlockNetwork(blocks, widths, graphs.num_outputs, shape.width, size, shape.dropout)
        sizes = [math.ceil(RATIO**level * size) for level in range(shape.layers - 1)]
        body.pools.extend(POOLERS[pooler](shape.width, RATIO, size) for size in sizes)
        return Encoded(encoder, body)

    return network


def _printed_peer(make_conv):
    """Another convolution with VIGMMPool in the printed layers: table 3."""

    def network(graphs, training, shape):
        pairs = itertools.pairwise([graphs.num_features, *PRINTED_WIDTHS])
        blocks = [Block(make_conv(i, o), o, weighted=True) for i, o in pairs]
        pools = [VIGMMPool(width, RATIO) for width in PRINTED_WIDTHS[:-1]]
        size = graphs.mean_size(training)
        body = BlockNetwork(blocks, PRINTED_WIDTHS, graphs.num_outputs, HIDDEN, size, pools=pools)
        return Encoded(torch.nn.Identity(), body)

    return network


SIZES = (1, 3, 5, 7)  # K = C of table 4
DEPTHS = {  # of table 5, by the number of layers; for as_printed the coarsening keeps a quarter
    2: "P-FC(256)",
    4: "C(64)-P-FC(256)",
    6: "C(64)-P({ratio})-C(128)-P-FC(256)",
    8: "C(64)-P({ratio})-C(128)-P({ratio})-C(256)-P-FC(256)",
}
VARIANTS = {  # what each part of GIC is worth: one thing changed
    "GIC": _gic(),
    "GIC, C = 1": _gic(num_components=1),
    "GIC, K = 3": _gic(num_scales=3),
    "GIC, no projection": _gic(hidden_channels=None),
    "GIC, coarsened": _gic(ratio=RATIO),
    "GIC.as_printed": _gic(GIC.as_printed, ratio=0.25),
}
PEERS = {name: _peer(name) for name in LAYERS if name not in ("GICConv", "ChebNet")}
POOLED = {f"GIN, {pooler}": _pooled(pooler) for pooler in POOLERS}
NETWORKS = {**VARIANTS, **PEERS, "GICConv": _peer("GICConv"), **POOLED}
PRINTED = {
    "GIC": _printed_gic(),
    "GIC.as_printed": _printed_gic(GIC.as_printed),
    **{f"GIC, K = C = {size}": _printed_gic(num_scales=size, num_components=size) for size in SIZES},
    **{
        f"GIC.as_printed, K = C = {size}": _printed_gic(GIC.as_printed, num_scales=size, num_components=size) for size in SIZES
    },
    **{f"GIC, N = {depth}": _printed_gic(architecture=text.format(ratio=0.5)) for depth, text in DEPTHS.items()},
    **{
        f"GIC.as_printed, N = {depth}": _printed_gic(GIC.as_printed, architecture=text.format(ratio=0.25))
        for depth, text in DEPTHS.items()
    },
    "ChebNet, VIGMMPool": _printed_peer(lambda i, o: ChebConv(i, o, K=7)),
    "GCN, VIGMMPool": _printed_peer(GCNConv),
    "GIC, flat": _flat,
    "GIC, coarsened": _printed_gic(architecture=PRINTED_ARCHITECTURE),
    "GIC, affinity laplacian": _printed_gic(architecture=PRINTED_ARCHITECTURE, pool_kwargs={"affinity": "laplacian"}),
}


def field_settings(model):
    """The settings of the fields that the model takes; None of a peer."""
    for module in model.modules():
        if isinstance(module, GICConv):
            return module.num_scales, module.add_self_loops, module.max_neighbors
    return None
