"""The layers that the convolution is compared with: one training step (forward and backward) of each."""

from functools import partial

import torch
from torch_geometric.nn import GCNConv
from torch_geometric.utils import degree

from torch_gic import GIC, GICConv, receptive_fields

from ..common.layers import LAYERS, About, convolve, pseudo_coordinates

SCALES = COMPONENTS = 7  # of the paper
WIDTHS = ((38, 64), (64, 128), (128, 256))
OURS, SINGLE, PRINTED, GIN, PNA = "GICConv", "GICConv, C = 1", "GICConv of GIC.as_printed", "GIN", "PNA"
WIDE = 1433, 64  # channels of Cora


def layer_steps(batch, in_channels, out_channels):
    """A training step of each layer on the same nodes, by name. Fields are given, as they are made once per data set."""
    torch.manual_seed(0)
    x = torch.randn(batch.num_nodes, in_channels, requires_grad=True)
    edges, about = batch.edge_index, About(torch.bincount(degree(batch.edge_index[1], batch.num_nodes).long()))
    near = receptive_fields(edges, num_nodes=batch.num_nodes)
    far = receptive_fields(edges, num_nodes=batch.num_nodes, num_scales=SCALES, add_self_loops=True)
    pseudo = pseudo_coordinates(edges, batch.num_nodes, None)
    calls = {
        name: _Peer(make(in_channels, out_channels, about), edges, pseudo) for name, make in LAYERS.items() if name != OURS
    }
    printed = GIC.as_printed(in_channels, out_channels, architecture=f"C({out_channels})").layers[0]
    ours = {
        OURS: (GICConv(in_channels, out_channels), {"fields": near}),
        SINGLE: (GICConv(in_channels, out_channels, num_components=1), {"fields": near}),
        f"{OURS}, fields each time": (GICConv(in_channels, out_channels), {}),
        PRINTED: (printed, {"fields": far}),
    }
    steps = {name: partial(step, layer, x, (edges,), given) for name, (layer, given) in ours.items()}
    return {name: partial(step, layer, x, (), {}) for name, layer in calls.items()} | steps


class _Peer(torch.nn.Module):
    """A layer with what it takes beside the features."""

    def __init__(self, layer, edges, pseudo):
        super().__init__()
        self.layer, self.edges, self.pseudo = layer, edges, pseudo

    def forward(self, x):
        return convolve(self.layer, x, self.edges, self.pseudo)


def wide_steps(data):
    """A training step on one graph of many features, whose fields are made once."""
    x = data.x.clone().requires_grad_()
    fields = receptive_fields(data.edge_index, num_nodes=data.num_nodes)
    layers = {
        "GCN": (GCNConv(*WIDE, cached=True), {}),
        OURS: (GICConv(*WIDE), {"fields": fields}),
        SINGLE: (GICConv(*WIDE, num_components=1), {"fields": fields}),
    }
    return {name: partial(step, layer, x, (data.edge_index,), given) for name, (layer, given) in layers.items()}


def step(layer, x, arguments, options):
    layer(x, *arguments, **options).square().mean().backward()
    x.grad = None
    layer.zero_grad()


def kernel_calls(batch, in_channels, threads):
    """The compiled kernels alone, each on each number of threads."""
    torch.manual_seed(0)
    fields = receptive_fields(batch.edge_index, num_nodes=batch.num_nodes, num_scales=SCALES)
    mu = torch.randn(SCALES, COMPONENTS, in_channels)
    mixture = mu, torch.full_like(mu, 2.0), torch.zeros(SCALES, COMPONENTS)
    operands = torch.randn(batch.num_nodes, in_channels), *mixture, 8 * fields.weight, fields.index[0], fields.rowptr
    encode, backward = torch.ops.torch_gic.gaussian_encode, torch.ops.torch_gic.gaussian_encode_backward
    encoding, mass = encode(*operands)
    calls = {
        "encoding, forward": lambda: encode(*operands),
        "encoding, backward": lambda: backward(encoding, mass, encoding, mass, *operands),
        "fields": lambda: receptive_fields(batch.edge_index, num_nodes=batch.num_nodes, num_scales=SCALES),
    }

    def run(call, count):
        torch.set_num_threads(count)
        call()

    return {f"{name} / {count}": partial(run, call, count) for name, call in calls.items() for count in threads}


def sparse_powers(edge_index, num_nodes, num_scales, shared=True):
    """The fields by products of `torch.sparse` matrices. Without `shared`, the bare powers are all that is computed."""
    index = torch.cat([edge_index.flip(0), torch.arange(num_nodes).repeat(2, 1)], dim=1)
    adjacency = torch.sparse_coo_tensor(index, torch.ones(index.size(1)), (num_nodes, num_nodes)).to_sparse_csr()
    powers = [adjacency]
    while len(powers) < num_scales:
        powers.append(powers[-1] @ adjacency)
    if not shared:
        return powers
    keys, values = [], []
    for power in powers:
        degrees = (power @ torch.ones(num_nodes, 1)).squeeze(1)
        row, col = power.to_sparse_coo().indices()
        keys.append(row * num_nodes + col)
        values.append(power.values() / degrees[col])
    key, position = torch.unique(torch.cat(keys), return_inverse=True)
    weight = torch.zeros(key.numel(), num_scales)
    for k, part in enumerate(position.split([k.numel() for k in keys])):
        weight[part, k] = values[k]
    return torch.stack([key % num_nodes, key // num_nodes]), weight
