"""The networks of the benchmark of graph classification, by name: GIC, what the paper compares it with, and its peers."""

import itertools
import math

import torch
from torch_geometric.nn import ChebConv, GCNConv, Linear, PNAConv, SAGEConv
from torch_geometric.utils import cumsum

from torch_gic import GIC, VIGMMPool
from torch_gic.nn.models.architecture import DEFAULT, parse_architecture

from .blocks import BlockNetwork, ConvBlock, GINBlock
from .conv_layers import PNA_AGGREGATORS, PNA_SCALERS
from .pooling_networks import TGPool

WIDTHS = [int(size) for kind, size in parse_architecture(DEFAULT) if kind == "C"]
RATIO = 0.5  # of all poolings
HIDDEN = 256  # of the fully connected layer


class FlatGIC(torch.nn.Module):
    """GIC without coarsening, as the paper describes it: zero nodes are added up to a fixed size, and the features of all
    nodes, in the order in which they come, are what is classified."""

    def __init__(self, in_channels, num_classes, num_nodes, **options):
        super().__init__()
        self.num_nodes = num_nodes
        convolutions = "-".join(f"C({width})" for width in WIDTHS)
        self.gic = GIC(in_channels, WIDTHS[-1], convolutions, **options)
        self.classifier = torch.nn.Sequential(
            Linear(num_nodes * WIDTHS[-1], HIDDEN), torch.nn.ReLU(), Linear(HIDDEN, num_classes)
        )

    def forward(self, x, edge_index, edge_weight=None, batch=None, *, batch_size=None, fields=None):
        x = self.gic(x, edge_index, edge_weight, batch, fields=fields)
        first = cumsum(torch.bincount(batch, minlength=batch_size))[batch]
        padded = x.new_zeros(batch_size * self.num_nodes, x.size(1))
        padded[batch * self.num_nodes + torch.arange(batch.numel()) - first] = x
        return self.classifier(padded.view(batch_size, -1))


def _gic(make):
    """A network of this package; what a setting does not say is the default of the class."""

    def network(graphs, training, setting):
        names = ("architecture", "num_scales", "num_components", "max_neighbors")
        given = {name: getattr(setting, name) for name in names if getattr(setting, name) is not None}
        return make(graphs, given)

    return network


def _default(graphs, given):
    return GIC(graphs.num_features, graphs.num_classes, **given)


def _printed(graphs, given):
    return GIC.as_printed(graphs.num_features, graphs.num_classes, **given)


def _laplacian(graphs, given):
    return _default(graphs, {**given, "pool_kwargs": {"affinity": "laplacian"}})


def _flat(graphs, given):
    return FlatGIC(graphs.num_features, graphs.num_classes, int(graphs.sizes().max()), **given)


def _blocks(make_block, make_pool=None):
    """A network of three such blocks, of the widths of GIC, with or without pooling between them."""

    def make(graphs, training, setting):
        channels = [graphs.num_features, *WIDTHS]
        blocks = [make_block(*pair) for pair in itertools.pairwise(channels)]
        model = BlockNetwork(blocks, WIDTHS, graphs.num_classes, HIDDEN)
        if make_pool is not None:
            size = graphs.mean_size(training)
            model.pools.extend(make_pool(WIDTHS[level], math.ceil(RATIO**level * size)) for level in range(2))
        return model

    return make


def _pna(graphs, training, setting):
    """PNA with its usual aggregators and scalers, which need the degrees of the training graphs."""
    known = torch.isin(graphs.graph, training)
    degrees = torch.bincount(graphs.numbers[known, 0].long())

    def block(in_channels, out_channels):
        return ConvBlock(PNAConv(in_channels, out_channels, PNA_AGGREGATORS, PNA_SCALERS, degrees), weighted=False)

    return _blocks(block)(graphs, training, setting)


def _vigmm(in_channels, mean_size):
    return VIGMMPool(in_channels, RATIO)


def _tgp(name):
    return lambda in_channels, mean_size: TGPool(name, in_channels, RATIO, mean_size)


def _cheb(in_channels, out_channels):
    return ConvBlock(ChebConv(in_channels, out_channels, K=7))


def _gcn(in_channels, out_channels):
    return ConvBlock(GCNConv(in_channels, out_channels))


def _sage(in_channels, out_channels):
    return ConvBlock(SAGEConv(in_channels, out_channels), weighted=False)


# name: factory(graphs, training graphs, setting)
GIC_NETWORKS = {
    "GIC": _gic(_default),
    "GIC-printed": _gic(_printed),
    "GIC-laplacian": _gic(_laplacian),
    "GIC-flat": _gic(_flat),
}
NETWORKS = {
    **GIC_NETWORKS,
    "ChebNet-VIGMM": _blocks(_cheb, _vigmm),
    "GCN-VIGMM": _blocks(_gcn, _vigmm),
    "GIN": _blocks(GINBlock),
    "GCN": _blocks(_gcn),
    "GraphSAGE": _blocks(_sage),
    "PNA": _pna,
    "GIN-MinCut": _blocks(GINBlock, _tgp("mincut")),
    "GIN-TopK": _blocks(GINBlock, _tgp("topk")),
}
