"""Right arguments of every raw operation, drawn at random."""

import torch

from torch_gic.coarsening import node_volume, undirected_graph
from torch_gic.coarsening.soft import cut_affinity

ops = torch.ops.torch_gic


def graph(draw, dtype=torch.float32):
    """Features, edges, weights and graphs of a small batch."""
    n = draw.choice((0, 1, 2, 5, 9, 30))
    edges = torch.randint(n, (2, draw.randrange(4 * n))) if n > 0 else torch.empty(2, 0, dtype=torch.long)
    if draw.random() < 0.6:
        edges = torch.cat([edges, edges.flip(0)], dim=1)
    batch = torch.randint(draw.choice((1, 3)), (n,)).sort().values
    edges = edges[:, batch[edges[0]] == batch[edges[1]]]
    weight = torch.rand(edges.size(1), dtype=dtype) * 10.0 ** draw.randrange(-3, 4)
    return torch.randn(n, 4, dtype=dtype), edges, weight, batch


def _clusters(draw, batch, num_graphs):
    """Where nodes and clusters of each graph begin, and the clusters: none empty."""
    size = torch.bincount(batch, minlength=num_graphs)
    ptr = torch.nn.functional.pad(size.cumsum(0), (1, 0))
    counts = (size * draw.choice((0.2, 0.5, 1.0))).ceil().long()
    offset = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
    return ptr, offset, offset[batch] + (torch.arange(batch.numel()) - ptr[batch]) % counts[batch].clamp(min=1)


def coarsening(draw):
    """What soft EM takes, right but for its number of iterations."""
    _, edges, weight, batch = graph(draw, torch.float64)
    num_graphs = int(batch.max()) + 1 if batch.numel() > 0 else 1
    made = undirected_graph(edges, weight, batch, num_graphs)
    ptr, offset, cluster = _clusters(draw, batch, num_graphs)
    rank = torch.cat([torch.randperm(int(count)) for count in ptr.diff()])
    mass = node_volume(made, batch, num_graphs) + 0.1
    precision = mass.new_full((num_graphs,), draw.choice((1.0, 16.0)))
    return *cut_affinity(made, mass, batch, num_graphs), mass, rank, ptr, offset, precision, cluster


def encoding(draw):
    dtype = draw.choice((torch.float32, torch.float64))
    scales, components, channels, entries, nodes = (
        draw.choice(sizes) for sizes in ((1, 3), (1, 2, 5), (1, 4, 17), (0, 9), (1, 4))
    )
    mixture = (
        torch.randn(scales, components, channels, dtype=dtype),
        torch.rand(scales, components, channels, dtype=dtype) + 0.3,
    )
    ends = torch.randint(entries + 1, (nodes - 1,)).sort().values.tolist()
    rowptr, member = torch.tensor([0, *ends, entries]), torch.randint(6, (entries,))
    weight = torch.rand(entries, scales, dtype=dtype)
    return (
        torch.randn(6, channels, dtype=dtype),
        *mixture,
        torch.randn(scales, components, dtype=dtype),
        weight,
        member,
        rowptr,
    )


def means(draw):
    x, _, _, _, weight, *rows = encoding(draw)
    return x, weight[:, 0].contiguous(), *rows


def choices(draw):
    """What the responsibility takes: the graph, and clusters as they are after coarsening."""
    _, edges, weight, batch = graph(draw, torch.float64)
    num_graphs = int(batch.max()) + 1 if batch.numel() > 0 else 1
    made = undirected_graph(edges, weight, batch, num_graphs)
    ptr, offset, cluster = _clusters(draw, batch, num_graphs)
    mass = node_volume(made, batch, num_graphs) + 0.1
    return mass, *made, ptr, offset, cluster, mass.new_full((num_graphs,), draw.choice((1.0, 16.0)))


def merged(draw):
    x, edges, weight, _ = graph(draw)
    influence, batch = x.new_ones(x.size(0)).double(), torch.zeros(x.size(0), dtype=torch.long)
    return edges, weight, influence, batch, 1, 0.5, None, 5, draw.choice((0, 4)), draw.random() < 0.5, None


def features(draw):
    x, edges, *_ = graph(draw)
    return x, edges, torch.randint(3, (x.size(0),))


def powers(draw):
    x, edges, weight, _ = graph(draw)
    return edges[1], edges[0], weight, x.size(0), draw.choice((1, 3)), draw.choice((None, 2)), None


def encoding_backward(draw):
    inputs = encoding(draw)
    out, mass = ops.gaussian_encode(*inputs)
    return torch.randn_like(out), torch.randn_like(mass), out, mass, *inputs


def described(draw):
    inputs = encoding(draw)
    return *ops.gaussian_encode(*inputs), inputs[2]


def described_backward(draw):
    inputs = described(draw)
    return torch.randn_like(ops.describe(*inputs)), *inputs


def clamped(draw):
    x = encoding(draw)[0]
    return x, ops.channel_statistics(x), draw.choice((0.5, 20.0))


def clamped_backward(draw):
    inputs = clamped(draw)
    return torch.randn_like(inputs[0]), *inputs


def means_backward(draw):
    inputs = means(draw)
    out, mass = ops.field_mean(*inputs)
    return torch.randn_like(out), out, mass, *inputs


def norm_backward(draw):
    x = graph(draw)[0]
    return torch.randn_like(x), x, x.new_zeros(4), x.new_ones(4), 5.0


def largest_backward(draw):
    x, _, groups = features(draw)
    out = ops.cluster_max(x, groups, 3)
    return torch.randn_like(out), x, out, groups


def choices_backward(draw):
    inputs = choices(draw)
    return torch.randn_like(inputs[0]), *inputs


RAW = {
    "adjacency_powers": powers,
    "bounded_norm": lambda draw: (encoding(draw)[0], 5.0),
    "bounded_norm_backward": norm_backward,
    "channel_statistics": lambda draw: encoding(draw)[:1],
    "cluster_edges": lambda draw: (*features(draw)[1:], 3),
    "cluster_max": lambda draw: (*features(draw)[::2], 3),
    "cluster_max_backward": largest_backward,
    "coarsen": merged,
    "describe": described,
    "describe_backward": described_backward,
    "field_mean": means,
    "field_mean_backward": means_backward,
    "gaussian_encode": encoding,
    "gaussian_encode_backward": encoding_backward,
    "outlier_clamp": clamped,
    "outlier_clamp_backward": clamped_backward,
    "graph_sizes": lambda draw: graph(draw)[3:],
    "responsibility": choices,
    "responsibility_backward": choices_backward,
    "soft_em": lambda draw: (*coarsening(draw), 3),
    "true_places": lambda draw: (graph(draw)[3] > 0,),
}


def raw(draw):
    """A raw operation and its arguments, right."""
    name = draw.choice(sorted(RAW))
    return getattr(ops, name), RAW[name](draw)
