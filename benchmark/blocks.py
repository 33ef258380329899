"""Networks of other convolutions in the shape of GIC: blocks with pooling between them, and a readout of all levels."""

import torch
from torch_geometric.nn import BatchNorm, Linear, global_max_pool, global_mean_pool


class GINBlock(torch.nn.Module):
    """GIN's convolution (eps = 0) with weighted edges, which PyG's has not; batch normalisation and ReLU."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.mlp = torch.nn.Sequential(
            Linear(in_channels, out_channels),
            BatchNorm(out_channels, allow_single_element=True),
            torch.nn.ReLU(),
            Linear(out_channels, out_channels),
            BatchNorm(out_channels, allow_single_element=True),
            torch.nn.ReLU(),
        )

    def forward(self, x, edge_index, edge_weight):
        message = x[edge_index[0]]
        if edge_weight is not None:
            message = message * edge_weight.unsqueeze(1)
        return self.mlp(x.index_add(0, edge_index[1], message))


class ConvBlock(torch.nn.Module):
    """A convolution of PyG, batch normalisation and ReLU."""

    def __init__(self, conv, weighted=True):
        super().__init__()
        self.conv = conv
        self.norm = BatchNorm(conv.out_channels, allow_single_element=True)
        self.weighted = weighted  # whether the convolution takes weights of edges

    def forward(self, x, edge_index, edge_weight):
        weight = (edge_weight,) if self.weighted else ()
        return self.norm(self.conv(x, edge_index, *weight)).relu()


class BlockNetwork(torch.nn.Module):
    """Blocks with a pooling between each two, or none. Of all levels it reads out the maximum and the mean, or, with the
    readout "last", the maximum of the last one."""

    def __init__(self, blocks, channels, num_classes, hidden, readout="all"):
        super().__init__()
        self.readout = readout
        self.blocks = torch.nn.ModuleList(blocks)
        read = channels[-1] if readout == "last" else 2 * sum(channels)
        self.classifier = torch.nn.Sequential(Linear(read, hidden), torch.nn.ReLU(), Linear(hidden, num_classes))
        self.pools = torch.nn.ModuleList()

    def forward(self, x, edge_index, edge_weight=None, batch=None, *, batch_size=None):
        levels = []
        for number, block in enumerate(self.blocks):
            if 0 < number <= len(self.pools):
                x, edge_index, edge_weight, batch, _ = self.pools[number - 1](x, edge_index, edge_weight, batch)
            x = block(x, edge_index, edge_weight)
            levels.append((x, batch))
        out = global_max_pool(x, batch, batch_size) if self.readout == "last" else read_out(levels, batch_size)
        return self.classifier(out)


def read_out(levels, batch_size):
    """The maximum and the mean over each graph, of all levels: pairs of features and batch."""
    readouts = (global_max_pool, global_mean_pool)
    return torch.cat([readout(x, batch, batch_size) for x, batch in levels for readout in readouts], dim=1)
