"""The network of the benchmark of nodes, the same for all convolutions: GICConv and those of PyG."""

import torch
import torch.nn.functional as F
from torch_geometric.nn import LayerNorm, Linear

from torch_gic import GICConv

from ..common.layers import LAYERS, convolve

NETWORKS = {name: LAYERS[name] for name in ("GICConv", "PNA", "GIN", "GraphSAGE", "GATv2", "GMMConv", "GCN")}
NETWORKS["GICConv, C = 1"] = lambda i, o, about: GICConv(i, o, num_components=1)


class NodeNetwork(torch.nn.Module):
    """An encoder of two layers, convolutions, each normalised and added to what it convolves, and a linear layer."""

    def __init__(self, make_conv, in_channels, width, out_channels, num_layers, dropout, about):
        super().__init__()
        self.dropout = dropout
        self.first, self.second = Linear(in_channels, width), Linear(width, width)
        self.convs = torch.nn.ModuleList(make_conv(width, width, about) for _ in range(num_layers))
        self.norms = torch.nn.ModuleList(LayerNorm(width, mode="node") for _ in range(num_layers))
        self.last = Linear(width, out_channels)

    def forward(self, x, edge_index, pseudo, **fields):
        x = self.second(self._drop(self._project(x))).relu()
        for conv, norm in zip(self.convs, self.norms, strict=True):
            h = self._drop(x)
            out = conv(h, edge_index, **fields) if fields else convolve(conv, h, edge_index, pseudo)
            x = x + norm(out).relu()
        return self.last(self._drop(x))

    def _drop(self, x):
        return F.dropout(x, self.dropout, self.training)

    def _project(self, x):
        """Features are words of a document or languages of a player: some are dropped."""
        if not x.is_sparse:
            return self.first(self._drop(x)).relu()
        x = torch.sparse_coo_tensor(x.indices(), self._drop(x.values()), x.shape, is_coalesced=True, check_invariants=False)
        return (torch.sparse.mm(x, self.first.weight.t()) + self.first.bias).relu()
