"""The network of the benchmark of nodes, the same for all convolutions: GIC's and those of PyG."""

import torch
import torch.nn.functional as F
from torch_geometric.nn import BatchNorm, GATConv, GCNConv, LayerNorm, Linear, SAGEConv
from torch_geometric.typing import WITH_TORCH_SPARSE, SparseTensor

from torch_gic import GICConv, receptive_fields

HEADS = 4  # of GAT


class VertexNetwork(torch.nn.Module):
    """A linear layer, convolutions and a linear layer.

    With `deep`, layers are normalised over the nodes and convolutions added to what they convolve.
    """

    def __init__(self, make_conv, in_channels, hidden, out_channels, num_layers, dropout, deep):
        super().__init__()
        self.dropout, self.deep = dropout, deep
        self.first = Linear(in_channels, hidden)
        self.convs = torch.nn.ModuleList(make_conv(hidden) for _ in range(num_layers))
        self.norms = torch.nn.ModuleList(
            BatchNorm(hidden) if deep else LayerNorm(hidden, mode="node") for _ in range(num_layers)
        )
        self.last = Linear(hidden, out_channels)

    def forward(self, x, *graph, **fields):
        x = self._project(x)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            out = norm(conv(F.dropout(x, self.dropout, self.training), *graph, **fields)).relu()
            x = x + out if self.deep else out
        return self.last(F.dropout(x, self.dropout, self.training))

    def _project(self, x):
        """Features are words of a document or languages of a player: some are dropped."""
        if not x.is_sparse:
            return self.first(F.dropout(x, self.dropout, self.training)).relu()
        values = F.dropout(x.values(), self.dropout, self.training)
        x = torch.sparse_coo_tensor(x.indices(), values, x.shape, is_coalesced=True)
        return (torch.sparse.mm(x, self.first.weight.t()) + self.first.bias).relu()


NETWORKS = {  # name: convolution of so many channels
    "GIC": lambda hidden: GICConv(hidden, hidden),
    "GCN": lambda hidden: GCNConv(hidden, hidden),
    "GraphSAGE": lambda hidden: SAGEConv(hidden, hidden),
    "GAT": lambda hidden: GATConv(hidden, hidden // HEADS, heads=HEADS),
}


def graph_arguments(network, data, num_nodes):
    """What a convolution takes beside the features: the edges, and for GIC fields that are computed once.

    GCN gets the edges as a sparse matrix where torch-sparse is there: the same sums, and faster. (PyG's SAGEConv
    would be too, but refuses it in a process in which another one has an aggregation of its own.)
    """
    if network == "GCN" and WITH_TORCH_SPARSE:
        source, target = data.edge_index
        return (SparseTensor(row=target, col=source, sparse_sizes=(num_nodes, num_nodes)),), {}
    fields = {"fields": receptive_fields(data.edge_index, num_nodes=num_nodes)} if network == "GIC" else {}
    return (data.edge_index,), fields
