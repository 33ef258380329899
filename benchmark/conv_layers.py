"""The layers that the convolution is compared with: one training step (forward and backward) of each."""

from functools import partial

import torch
import torch.nn.functional as F
from torch_geometric.nn import ChebConv, GINConv, GMMConv, PNAConv
from torch_geometric.utils import degree

from torch_gic import GICConv, receptive_fields
from torch_gic.ops import gaussian_encode

from .measure import available_megabytes

SCALES = COMPONENTS = 7
WIDTHS = ((38, 64), (64, 128), (128, 256))
# Those that work on the multi-scale fields; the others on one-hop edges.
PRODUCT, OURS, REFERENCE, GMM_FIELD = "filter product", "GICConv", "our reference", "GMMConv on the field"


def layer_steps(batch, fields, in_channels, out_channels):
    """A training step of each layer, by name. One that would not fit into memory is left out."""
    torch.manual_seed(0)
    x = torch.randn(batch.num_nodes, in_channels, requires_grad=True)
    edge_index, (field_index, field_weight) = batch.edge_index, fields
    conv = GICConv(in_channels, out_channels, root_weight=False)  # nothing beside the filter, as in the product
    encoding = torch.randn(batch.num_nodes, conv.lin.weight.size(1), requires_grad=True)
    pseudo = torch.rand(edge_index.size(1), 2)
    histogram = torch.bincount(degree(edge_index[1], batch.num_nodes).long())
    cheb, gmm = ChebConv(in_channels, out_channels, K=7), GMMConv(in_channels, out_channels, dim=2, kernel_size=7)
    field_gmm = GMMConv(in_channels, out_channels, dim=SCALES, kernel_size=7)
    scalers = ["identity", "amplification", "attenuation"]
    pna = PNAConv(in_channels, out_channels, ["mean", "min", "max", "std"], scalers, histogram)
    mlp = torch.nn.Linear(in_channels, out_channels), torch.nn.ReLU(), torch.nn.Linear(out_channels, out_channels)
    gin = GINConv(torch.nn.Sequential(*mlp))

    def reference():
        log_pi = conv.mixture.alpha.log_softmax(-1)
        weight = field_weight * conv.log_scale.exp()
        gradients = gaussian_encode(x, conv.mu, conv.sigma, log_pi, field_index, weight, batch.num_nodes)
        return conv.lin(gradients.flatten(1))

    forward = {
        PRODUCT: lambda: F.linear(encoding, conv.lin.weight),
        OURS: lambda: conv(x, edge_index, fields=fields),
        REFERENCE: reference,
        GMM_FIELD: lambda: field_gmm(x, field_index, field_weight),
        "GMMConv": lambda: gmm(x, edge_index, pseudo),
        "ChebConv": lambda: cheb(x, edge_index),
        "PNAConv": lambda: pna(x, edge_index),
        "GINConv": lambda: gin(x, edge_index),
    }
    # What autograd keeps of the terms of every entry.
    entries = field_index.size(1)
    needed = {REFERENCE: 3 * entries * SCALES * COMPONENTS * 2 * in_channels, GMM_FIELD: 4 * entries * 7 * out_channels}
    for name, numbers in needed.items():
        if 4 * numbers / 2**20 > 0.7 * available_megabytes():
            del forward[name]
    parameters = [x, encoding, *(p for layer in (conv, cheb, gmm, field_gmm, pna, gin) for p in layer.parameters())]

    def step(call):
        call().square().mean().backward()
        for parameter in parameters:
            parameter.grad = None

    return {name: partial(step, call) for name, call in forward.items()}


def kernel_calls(batch, fields, in_channels, threads):
    """The compiled kernels alone, each on each number of threads."""
    torch.manual_seed(0)
    (member, vertex), field_weight = fields
    x, mixture = torch.randn(batch.num_nodes, in_channels), (SCALES, COMPONENTS)
    operands = x, 3 * torch.rand(batch.num_nodes, *mixture), torch.randn(mixture), 8 * field_weight, member, vertex
    outputs = torch.ops.torch_gic.encode_moments(*operands, batch.num_nodes)
    calls = {
        "encoding, forward": lambda: torch.ops.torch_gic.encode_moments(*operands, batch.num_nodes),
        "encoding, backward": lambda: torch.ops.torch_gic.encode_moments_backward(*outputs, *operands),
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
