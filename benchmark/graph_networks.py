"""The networks of the benchmark of graph classification, by name: GIC, what the paper compares it with, and its peers."""

import itertools
import math

import torch
from torch_geometric.nn import ChebConv, GCNConv, Linear, SAGEConv
from torch_geometric.utils import cumsum

from torch_gic import GIC, VIGMMPool
from torch_gic.nn.architecture import DEFAULT, parse_architecture
from torch_gic.nn.gic_conv import GICConv

from .blocks import BlockNetwork, ConvBlock, GINBlock
from .pooling_networks import TGPool

WIDTHS = [int(size) for kind, size in parse_architecture(DEFAULT) if kind == "C"]
RATIO = 0.5  # of all poolings
HIDDEN = 256  # of the fully connected layer
EM_STEPS = 30


class FlatGIC(torch.nn.Module):
    """GIC without coarsening, as the paper describes it: zero vertices are added up to a fixed size, and the attributes of all
    vertices, in the order in which they come, are what is classified. Convolutions are the paper's, without root weights."""

    def __init__(self, in_channels, num_classes, num_vertices, **options):
        super().__init__()
        self.num_vertices = num_vertices
        convolutions = "-".join(f"C({width})" for width in WIDTHS)
        self.gic = GIC(in_channels, WIDTHS[-1], convolutions, root_weight=False, **options)
        self.classifier = torch.nn.Sequential(
            Linear(num_vertices * WIDTHS[-1], HIDDEN), torch.nn.ReLU(), Linear(HIDDEN, num_classes)
        )

    def forward(self, x, edge_index, edge_weight=None, batch=None, *, batch_size=None, fields=None):
        x = self.gic(x, edge_index, edge_weight, batch, fields=fields)
        first = cumsum(torch.bincount(batch, minlength=batch_size))[batch]
        padded = x.new_zeros(batch_size * self.num_vertices, x.size(1))
        padded[batch * self.num_vertices + torch.arange(batch.numel()) - first] = x
        return self.classifier(padded.view(batch_size, -1))


def _gic(graphs, training, setting, **options):
    architecture = setting.architecture or DEFAULT
    return GIC(graphs.num_features, graphs.num_classes, architecture, **{**_mixture(setting), **options})


def _fitted(graphs, training, setting):
    """Components only in the first convolution, where channels are few, and the readout behind it. EM fits those of the
    convolution to the attributes of the training graphs, which are no samples of a normal distribution: components that
    start at random would be idle."""
    convolutions = [layer for layer in parse_architecture(setting.architecture or DEFAULT) if layer.kind == "C"]
    components = [setting.num_components, *[1] * (len(convolutions) - 1)]
    model = _gic(graphs, training, setting, num_components=components, add_self_loops=False)
    known = graphs.batch(training)
    model.layers[0].init_from_data(known.x, known.edge_index, fields=known.fields, num_iterations=EM_STEPS)
    return model


def _printed(graphs, training, setting):
    model = _gic(
        graphs, training, setting._replace(architecture=GIC.PRINTED), kernel="laplacian", readout="last", root_weight=False
    )
    for module in model.modules():
        if isinstance(module, GICConv):  # the weights of the fields as they are
            torch.nn.init.zeros_(module.log_scale.requires_grad_(False))
    return model


def _flat(graphs, training, setting):
    return FlatGIC(graphs.num_features, graphs.num_classes, int(graphs.sizes().max()), **_mixture(setting))


def _mixture(setting):
    names = ("num_scales", "num_components", "max_neighbors")
    return {name: getattr(setting, name) for name in names}


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


# name: factory(graphs, training graphs, setting). All but the first two have self-loops in the fields, and no root weights.
WITHOUT_LOOPS = ("GIC", "GIC-fitted")
GIC_NETWORKS = {
    "GIC": lambda *arguments: _gic(*arguments, add_self_loops=False),
    "GIC-fitted": _fitted,
    "GIC-plain": lambda *arguments: _gic(*arguments, root_weight=False),
    "GIC-printed": _printed,
    "GIC-laplacian": lambda *arguments: _gic(*arguments, root_weight=False, kernel="laplacian"),
    "GIC-flat": _flat,
}
NETWORKS = {
    **GIC_NETWORKS,
    "ChebNet-VIGMM": _blocks(_cheb, _vigmm),
    "GCN-VIGMM": _blocks(_gcn, _vigmm),
    "GIN": _blocks(GINBlock),
    "GCN": _blocks(_gcn),
    "GraphSAGE": _blocks(_sage),
    "GIN-MinCut": _blocks(GINBlock, _tgp("mincut")),
    "GIN-TopK": _blocks(GINBlock, _tgp("topk")),
}
