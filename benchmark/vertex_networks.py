"""The network of the benchmark of vertices, the same for all convolutions: GIC's and those of PyG."""

import torch
import torch.nn.functional as F
from torch_geometric.nn import BatchNorm, GATConv, GCNConv, LayerNorm, Linear, SAGEConv
from torch_geometric.typing import WITH_TORCH_SPARSE, SparseTensor

from torch_gic import GICConv, receptive_fields

HEADS = 4  # of GAT


class VertexNetwork(torch.nn.Module):
    """A linear layer, convolutions and a linear layer.

    With `deep`, layers are normalised over the vertices and convolutions added to what they convolve. With few labels, as on
    the citation networks, trials were better without.
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

    @torch.no_grad()
    def start(self, x, *graph, fields=None):
        """Starts the mixtures of GIC from the attributes that they will see; others have nothing to start."""
        x = self._project(x)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            if isinstance(conv, GICConv):
                conv.init_from_data(x, *graph, fields=fields)
                out = norm(conv(x, *graph, fields=fields)).relu()
                x = x + out if self.deep else out

    def _project(self, x):
        """Attributes are words of a document or languages of a player: some are dropped."""
        if not x.is_sparse:
            return self.first(F.dropout(x, self.dropout, self.training)).relu()
        values = F.dropout(x.values(), self.dropout, self.training)
        x = torch.sparse_coo_tensor(x.indices(), values, x.shape, is_coalesced=True)
        return (torch.sparse.mm(x, self.first.weight.t()) + self.first.bias).relu()


def _gic(setting):
    return lambda hidden: GICConv(hidden, hidden, setting.num_scales, setting.num_components, root_weight=False)


# name: the convolution of a setting
NETWORKS = {
    "GIC": _gic,
    "GCN": lambda setting: lambda hidden: GCNConv(hidden, hidden),
    "GraphSAGE": lambda setting: lambda hidden: SAGEConv(hidden, hidden),
    "GAT": lambda setting: lambda hidden: GATConv(hidden, hidden // HEADS, heads=HEADS),
}


def graph_arguments(setting, data, num_nodes):
    """What a convolution takes beside the attributes: the edges, and for GIC fields that are computed once.

    GCN gets the edges as a sparse matrix where torch-sparse is there: the same sums, and faster. (PyG's SAGEConv
    would be too, but refuses it in a process in which another one has an aggregation of its own.)
    """
    if setting.network == "GCN" and WITH_TORCH_SPARSE:
        source, target = data.edge_index
        return (SparseTensor(row=target, col=source, sparse_sizes=(num_nodes, num_nodes)),), {}
    fields = {}
    if setting.network == "GIC":
        sizes = {"num_scales": setting.num_scales, "max_neighbors": setting.max_neighbors}
        fields["fields"] = receptive_fields(data.edge_index, num_nodes=num_nodes, **sizes)
    return (data.edge_index,), fields
