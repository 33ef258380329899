"""The body of every peer: convolutions with or without poolings between them, and a readout of all levels."""

import torch
from torch_geometric.nn import BatchNorm, Linear, global_add_pool, global_max_pool, global_mean_pool

from ..common.layers import convolve


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
        norm = BatchNorm(out_channels, allow_single_element=True)
        self.mlp = torch.nn.Sequential(
            Linear(in_channels, out_channels), norm, torch.nn.ReLU(), Linear(out_channels, out_channels)
        )

    def forward(self, x, edge_index, edge_weight):
        message = x[edge_index[0]]
        if edge_weight is not None:
            message = message * edge_weight.unsqueeze(1)
        return self.mlp(x.index_add(0, edge_index[1], message))


class BlockNetwork(torch.nn.Module):
    """Blocks with a pooling between each two, or none. Of all levels it reads out maximum, mean and sum; the sum is taken over
    the mean number of nodes of a graph, so that the three are of one size. Then comes a classifier of two linear layers with
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
