"""Calls of the public functions and of the raw operations with arguments of which some are not what they should be."""

import random

import torch
from torch_geometric.data import Data

import torch_gic
from torch_gic import GIC, GaussianAggregation, GICConv, GICNet, VIGMMPool
from torch_gic.coarsening import node_volume, undirected_graph
from torch_gic.coarsening.soft import cut_affinity
from torch_gic.fields import bipartite_fields, receptive_fields

NUMBERS = (-(2**63), -1, 0, 1, 2, 3, 1000, 2**31, 2**62, 2**63 - 1, 0.5, -1.0, float("nan"), float("inf"), True, None, "x")
VALUES = (float("nan"), float("inf"), -float("inf"), -1.0, 0.0, 1e-45, 1e30, 3e38)
INDICES = (-1, -(2**62), 2**31, 2**62, 10**9, 7)
# What stays right: so many iterations are done as are asked for, and a gradient is that of the encoding it is given.
KEPT = {
    "soft_em": {10},
    "coarsen": {7},
    "gaussian_encode_backward": {2, 3},
    "field_mean_backward": {1, 2},
    "cluster_max_backward": {2},
}
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32, torch.int64, torch.bool, torch.complex64)


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


def corrupt(draw, value):
    """Something else in the place of an argument."""
    if not isinstance(value, torch.Tensor):
        return draw.choice(NUMBERS) if not isinstance(value, tuple) else tuple(corrupt(draw, part) for part in value)
    kind = draw.randrange(12)
    if kind == 0:
        return value.to(draw.choice(DTYPES))
    if kind == 1:
        return value[: value.size(0) // 2] if value.dim() > 0 else value
    if kind == 2:
        return torch.cat([value, value])
    if kind == 3:
        return value.unsqueeze(draw.randrange(2)) if value.dim() > 0 else value
    if kind == 4:
        return value.flatten()
    if kind == 5:
        return value.new_empty((0,) * value.dim())
    if kind == 6:
        return draw.choice((None, 3, "x", [1, 2], value.tolist()))
    if kind == 7:  # the same numbers, elsewhere in memory
        return torch.stack([value, value], dim=-1)[..., 0]
    if kind == 8:
        return value.to_sparse() if value.dim() > 0 else value
    if kind == 9:
        return value.flip(0) if value.dim() > 0 else value
    value = value.clone()
    if value.numel() > 0:
        flat = value.view(-1)
        for _ in range(draw.choice((1, 1, 3))):
            place = draw.randrange(flat.numel())
            flat[place] = draw.choice(VALUES) if value.is_floating_point() else draw.choice(INDICES)
    return value


def coarsening(draw):
    """What soft EM takes, right but for its number of iterations."""
    _, edges, weight, batch = graph(draw, torch.float64)
    num_graphs = int(batch.max()) + 1 if batch.numel() > 0 else 1
    made = undirected_graph(edges, weight, batch, num_graphs)
    size = torch.bincount(batch, minlength=num_graphs)
    ptr = torch.nn.functional.pad(size.cumsum(0), (1, 0))
    counts = (size * draw.choice((0.2, 0.5, 1.0))).ceil().long()
    offset = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
    rank = torch.cat([torch.randperm(int(count)) for count in size])
    cluster = offset[batch] + (torch.arange(batch.numel()) - ptr[batch]) % counts[batch].clamp(min=1)
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


def raw(draw):
    """A raw operation and its arguments, right."""
    ops = torch.ops.torch_gic
    x, edges, weight, _ = graph(draw)
    influence, one = x.new_ones(x.size(0)).double(), torch.zeros(x.size(0), dtype=torch.long)
    inputs = encoding(draw)
    given, mean = ops.gaussian_encode(*inputs), x.new_zeros(4)
    means = inputs[0], inputs[4][:, 0].contiguous(), *inputs[5:]
    groups = torch.randint(3, (x.size(0),))
    average, largest = ops.field_mean(*means), ops.cluster_max(x, groups, 3)
    return draw.choice(
        (
            (ops.adjacency_powers, (edges[1], edges[0], weight, x.size(0), draw.choice((1, 3)), draw.choice((None, 2)), None)),
            (ops.bounded_norm, (inputs[0], 5.0)),
            (ops.bounded_norm_backward, (torch.randn_like(x), x, mean, mean + 1, 5.0)),
            (ops.gaussian_encode, inputs),
            (ops.gaussian_encode_backward, (*map(torch.randn_like, given), *given, *inputs)),
            (ops.field_mean, means),
            (ops.field_mean_backward, (torch.randn_like(average[0]), *average, *means)),
            (ops.soft_em, (*coarsening(draw), 3)),
            (ops.coarsen, (edges, weight, influence, one, 1, 0.5, None, 5, draw.choice((0, 4)), draw.random() < 0.5, None)),
            (ops.cluster_edges, (edges, groups, 3)),
            (ops.cluster_max, (x, groups, 3)),
            (ops.cluster_max_backward, (torch.randn_like(largest), x, largest, groups)),
        )
    )  # fmt: skip


def public(draw):
    """A public function and its arguments by name, right."""
    x, edges, weight, batch = graph(draw)
    n, scales, bound = x.size(0), draw.choice((1, 2, 3)), draw.choice((None, 3))
    made = {"num_scales": scales, "max_neighbors": bound}
    whole = {"edge_index": edges, "edge_weight": weight, "batch": batch}
    pair = _pair(edges, n, scales)
    conv, net = GICConv(4, 3, 2, scales, max_neighbors=bound), GICNet(4, 5, 2, jk=draw.choice((None, "cat")))
    model = GIC(4, 2, draw.choice(("C(3)-P(0.5)-C(3)-P-FC(3)", "C(3)-C(3)", "C(3)-P")), 2, num_scales=scales)
    pool = VIGMMPool(draw.choice((4, None)), draw.choice((0.5, 2, 1.0)), soft=draw.random() < 0.3)
    for module in (conv, net, model, pool):
        module.train(draw.random() < 0.5)
    size = n, n
    return draw.choice(
        (
            (conv, {"x": x, **whole}),
            (GICConv(4, 3, 2, scales), {"x": x, "edge_index": edges, "fields": pair}),
            (GICConv((4, 4), 3, 2, add_self_loops=False), {"x": (x, x.clone()), "edge_index": edges, "edge_weight": weight}),
            (net, {"x": x, "edge_index": edges, "edge_weight": weight}),
            (model, {"x": x, **whole}),
            (pool, {"x": x, **whole}),
            (pool, {"x": x, **whole, "cluster": torch.arange(n)}),
            (GaussianAggregation(4, 3), {"x": x, "index": batch, "dim_size": 3}),
            (receptive_fields, {**whole, "num_nodes": n, **made, "add_self_loops": draw.random() < 0.5}),
            (bipartite_fields, {"edge_index": edges, "edge_weight": weight, "size": size}),
            (torch_gic.walk_counts, {"edge_index": edges, "edge_weight": weight, "num_nodes": n, "num_scales": scales}),
            (torch_gic.cluster, {**whole, "num_clusters": draw.choice((1, 3, 50)), "num_nodes": n}),
            (torch_gic.cluster, {**whole, "ratio": 0.3, "max_size": 5, "num_nodes": n}),
            (_plain_fields, {"x": x, "index": pair[0], "weight": pair[1]}),
            (_transform, {"x": x, "edge_index": edges, "edge_weight": weight, "num_scales": scales}),
            (
                _settings,
                {"in_channels": 4, "out_channels": 3, "num_components": 2, **made, "hidden_channels": 3, "scale": 8.0},
            ),
        )
    )


def _pair(edges, num_nodes, num_scales):
    fields = receptive_fields(edges, num_nodes=num_nodes, num_scales=num_scales)
    return fields.index, fields.weight


def _plain_fields(x, index, weight):
    return GICConv(4, 3, 2, max(weight.size(1), 1))(x, index, fields=(index, weight))


def _transform(x, edge_index, edge_weight, num_scales):
    data = torch_gic.ReceptiveFields(num_scales)(Data(x=x, edge_index=edge_index, edge_weight=edge_weight))
    return GICConv(4, 3, 2, num_scales)(data.x, data.edge_index, fields=data.fields)


def _settings(**settings):
    return GICConv(**settings)(torch.randn(3, 4), torch.tensor([[0, 1], [1, 2]]))


def case(number):
    """The function, its arguments and whether all of them are right, of a case by its number alone."""
    draw = random.Random(number)
    torch.manual_seed(number)
    is_raw = draw.random() < 0.5
    function, arguments = (raw if is_raw else public)(draw)
    named = dict(enumerate(arguments)) if is_raw else dict(arguments)
    kept = KEPT.get(function._qualified_op_name.rpartition("::")[2], set()) if is_raw else {"size"}
    wrong = draw.sample(sorted(set(named) - kept), min(len(named), draw.choice((0, 1, 1, 1, 2))))
    for name in wrong:
        value = corrupt(draw, named[name])
        named[name] = int(value) if is_raw and value is True else value  # as the dispatcher takes it
    return function, named, is_raw, wrong
