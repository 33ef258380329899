"""One layer of each network, by the name that PyG or this package gives it, for graphs and nodes alike."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.nn import BatchNorm, ChebConv, GATv2Conv, GCNConv, GINConv, GMMConv, Linear, PNAConv, SAGEConv
from torch_geometric.utils import degree

from torch_gic import GICConv

PNA_AGGREGATORS = ["mean", "min", "max", "std"]
PNA_SCALERS = ["identity", "amplification", "attenuation"]
HEADS = 4  # of GATv2
KERNELS = 5  # of GMMConv: as many Gaussians as GICConv has components
SCALES = COMPONENTS = 7  # of the paper: what costs most


class About(NamedTuple):
    """What some layers have to know of the training graphs."""

    degrees: Tensor  # how many nodes have each degree
    dimensions: int = 2  # of the pseudo-coordinates of edges


def gin_network(in_channels, out_channels):
    """GIN's own network of two layers."""
    norm = BatchNorm(out_channels, allow_single_element=True)
    return torch.nn.Sequential(Linear(in_channels, out_channels), norm, torch.nn.ReLU(), Linear(out_channels, out_channels))


def _pna(in_channels, out_channels, about):
    return PNAConv(in_channels, out_channels, PNA_AGGREGATORS, PNA_SCALERS, about.degrees)


LAYERS = {  # name: factory(in_channels, out_channels, about)
    "GICConv": lambda i, o, about: GICConv(i, o),
    "PNA": _pna,
    "GIN": lambda i, o, about: GINConv(gin_network(i, o)),
    "GraphSAGE": lambda i, o, about: SAGEConv(i, o),
    "GATv2": lambda i, o, about: GATv2Conv(i, o // HEADS, heads=HEADS),
    "GMMConv": lambda i, o, about: GMMConv(i, o, about.dimensions, KERNELS),
    "GCN": lambda i, o, about: GCNConv(i, o),
    "ChebNet": lambda i, o, about: ChebConv(i, o, K=3),
}


def convolve(layer, x, edge_index, pseudo):
    """Pseudo-coordinates go to the one layer that takes them."""
    return layer(x, edge_index, pseudo) if isinstance(layer, GMMConv) else layer(x, edge_index)


def pseudo_coordinates(edge_index, num_nodes, position):
    """Of each edge: the difference of positions where nodes have some, else the inverse roots of both degrees, as in the paper
    of GMMConv (Monti et al. 2017)."""
    if position is not None:
        return position[edge_index[0]] - position[edge_index[1]]
    root = degree(edge_index[1], num_nodes).clamp(min=1).rsqrt()
    return torch.stack([root[edge_index[0]], root[edge_index[1]]], dim=1)


class Encoder(torch.nn.Sequential):
    """Two linear layers on each node, in front of every network alike."""

    def __init__(self, in_channels, out_channels):
        layers = []
        for channels in (in_channels, out_channels):
            norm = BatchNorm(out_channels, allow_single_element=True)
            layers += [Linear(channels, out_channels), norm, torch.nn.ReLU()]
        super().__init__(*layers)
