"""The networks of the benchmark of graphs, by name: GIC, its variants, its peers, and GIN with poolings.

Each is a factory of the graphs, the numbers of the training graphs, and the `Shape`. The body follows a two-layer encoder, the
same for all, or stands alone.
"""

import itertools
import math
from typing import NamedTuple

import torch
from torch_geometric.nn import BatchNorm, Linear, global_add_pool, global_max_pool, global_mean_pool

from torch_gic import GIC, GICConv

from ..common.layers import LAYERS, Encoder, convolve, gin_network
from ..pooling.select import POOLERS

RATIO = 0.5  # of all poolings


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


class Block(torch.nn.Module):
    """A convolution of PyG, batch normalisation and ReLU."""

    def __init__(self, conv, out_channels, weighted=False):
        super().__init__()
        self.conv = conv
        self.norm = BatchNorm(out_channels, allow_single_element=True)
        self.weighted = weighted  # whether the convolution takes weights of edges, which a coarsened graph has

    def forward(self, x, edge_index, edge_weight, pseudo):
        out = self.conv(x, edge_index, edge_weight) if self.weighted else convolve(self.conv, x, edge_index, pseudo)
        return self.norm(out).relu()


class WeightedGIN(torch.nn.Module):
    """GIN's convolution (eps = 0) with weighted edges, which PyG's has not, for coarsened graphs."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.mlp = gin_network(in_channels, out_channels)

    def forward(self, x, edge_index, edge_weight):
        message = x[edge_index[0]]
        if edge_weight is not None:
            message = message * edge_weight.unsqueeze(1)
        return self.mlp(x.index_add(0, edge_index[1], message))


class BlockNetwork(torch.nn.Module):
    """Blocks with a pooling between each two, or none. It reads out maximum, mean and sum of all levels. The sum is divided by
    the mean number of nodes per graph, so the three have similar sizes. Then comes a classifier of two linear layers with
    dropout before each, as in GIC."""

    def __init__(self, blocks, channels, num_outputs, hidden, mean_size, dropout=0.0, pools=()):
        super().__init__()
        self.blocks, self.pools = torch.nn.ModuleList(blocks), torch.nn.ModuleList(pools)
        self.mean_size = mean_size
        self.classifier = torch.nn.Sequential(
            torch.nn.Dropout(dropout),
            Linear(3 * sum(channels), hidden),
            torch.nn.ReLU(),
            torch.nn.Dropout(dropout),
            Linear(hidden, num_outputs),
        )

    def forward(self, x, data):
        edge_index, edge_weight, batch, pseudo, levels = data.edge_index, None, data.batch, data.pseudo, []
        for number, block in enumerate(self.blocks):
            if 0 < number <= len(self.pools):
                x, edge_index, edge_weight, batch, _ = self.pools[number - 1](x, edge_index, edge_weight, batch)
            x = block(x, edge_index, edge_weight, pseudo)
            levels += [global_max_pool(x, batch, data.size), global_mean_pool(x, batch, data.size)]
            levels.append(global_add_pool(x, batch, data.size) / self.mean_size)
        return self.classifier(torch.cat(levels, dim=1))


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


def field_settings(model):
    """The settings of the fields that the model takes; None of a peer."""
    for module in model.modules():
        if isinstance(module, GICConv):
            return module.num_scales, module.add_self_loops, module.max_neighbors
    return None
