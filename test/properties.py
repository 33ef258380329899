"""Graphs of every odd kind, and what must hold for all of them."""

import math

import torch
from conftest import permute
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch_geometric.data import Batch, Data

from torch_gic import GIC, GICConv, VIGMMPool
from torch_gic.kernels.library import REFERENCES

CHANNELS, SCALES, COMPONENTS, RATIO = 3, 3, 2, 0.5
SHAPES = ("random", "none", "star", "clique", "path", "ring", "two parts")
TINY = 1e-20  # below it, differences of equal numbers are rounding
WEIGHTS = (0.0, 1e-30, 1e-3, 1.0, 7.0, 1e30)
FEATURES = {"normal": (0.0, 1.0), "constant": (1.0, 0.0), "huge": (0.0, 1e8), "tiny": (0.0, 1e-20), "far": (1e6, 1.0)}


@st.composite
def graphs(draw):
    n = draw(st.integers(0, 9))
    seed = draw(st.integers(0, 2**16))
    generator = torch.Generator().manual_seed(seed)
    edges = _edges(draw(st.sampled_from(SHAPES)), n, draw)
    if draw(st.booleans()):
        edges += [(b, a) for a, b in edges]
    if draw(st.booleans()):
        edges += edges[: len(edges) // 2]  # parallel
    if draw(st.booleans()):
        edges += [(i, i) for i in range(0, n, 2)]
    edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t().contiguous()
    choices = torch.tensor(draw(st.lists(st.sampled_from(WEIGHTS), min_size=1, max_size=3)))
    edge_weight = choices[torch.randint(len(choices), (len(edges),), generator=generator)]
    mean, scale = FEATURES[draw(st.sampled_from(sorted(FEATURES)))]
    x = mean + scale * torch.randn(n, CHANNELS, generator=generator)
    return Data(x=x, edge_index=edge_index, edge_weight=edge_weight)


def _edges(shape, n, draw):
    if shape == "random" and n > 0:
        node = st.integers(0, n - 1)
        return draw(st.lists(st.tuples(node, node), max_size=3 * n))
    if shape == "star":
        return [(0, i) for i in range(1, n)]
    if shape == "clique":
        return [(i, j) for i in range(n) for j in range(i)]
    if shape == "path":
        return [(i, i + 1) for i in range(n - 1)]
    if shape == "ring":
        return [(i, (i + 1) % n) for i in range(n)]
    if shape == "two parts":
        return [(i, i + 2) for i in range(n - 2)]
    return []


def batches():
    return st.lists(graphs(), min_size=1, max_size=4)


def network():
    torch.manual_seed(0)
    return GIC(CHANNELS, 2, f"C(4)-P({RATIO})-C(4)-P-FC(4)", COMPONENTS, num_scales=SCALES, hidden_channels=5)


def convolution():
    torch.manual_seed(0)
    return GICConv(CHANNELS, 4, COMPONENTS, SCALES, hidden_channels=5)


def evaluated(conv):
    """With the statistics of one batch, which no other changes."""
    conv(torch.randn(20, CHANNELS, generator=torch.Generator().manual_seed(0)), torch.empty(2, 0, dtype=torch.long))
    return conv.eval()


def pooling():
    torch.manual_seed(0)
    pool = VIGMMPool(CHANNELS, RATIO)
    torch.nn.init.normal_(pool.select.lin.weight)
    return pool


def close(a, b, tolerance=1e-4, floor=TINY):
    """Up to rounding beside the largest value: sums of large numbers come in another order."""
    assert a.shape == b.shape
    a, b = a.detach(), b.detach()
    if a.numel():
        largest = max(float(a.abs().amax()), float(b.abs().amax()), floor)
        assert float((a - b).abs().amax()) <= tolerance * largest, (a, b)


def finite(parts):
    """Values and gradients are numbers."""
    data = Batch.from_data_list(parts)
    for make in (convolution, pooling, network):
        model = make()
        x = data.x.clone().requires_grad_()
        out = model(x, data.edge_index, data.edge_weight, batch=data.batch)
        out = out if isinstance(out, torch.Tensor) else out.x
        assert bool(out.isfinite().all()), make.__name__
        (out / (1 + out.detach().abs().sum())).sum().backward()
        for value in (x.grad, *(parameter.grad for parameter in model.parameters())):
            assert value is None or bool(value.isfinite().all()), make.__name__


def batch_independent(parts):
    """A batch gives what its graphs give one by one, in evaluation: in training, it is normalised as a whole."""
    data, conv, pool = Batch.from_data_list(parts), evaluated(convolution()), pooling()
    whole = conv(data.x, data.edge_index, data.edge_weight)
    coarse = pool(data.x, data.edge_index, data.edge_weight, data.batch)
    for number, part in enumerate(parts):
        close(whole[data.batch == number], conv(part.x, part.edge_index, part.edge_weight))
        alone = pool(part.x, part.edge_index, part.edge_weight)
        assert torch.equal(coarse.x[coarse.batch == number], alone.x)


def equivariant(parts):
    """The order of the nodes changes the order of the output, and no value: of layers that have seen the same before."""
    for make, part in ((make, part) for make in (convolution, lambda: evaluated(convolution())) for part in parts):
        moved, order = permute(part, seed=1)
        whole = make()(part.x, part.edge_index, part.edge_weight)
        close(make()(moved.x, moved.edge_index, moved.edge_weight)[order], whole)


def exact_clusters(parts):
    """Every graph gets the clusters it asked for, inside itself, and no edge weight is lost."""
    data, pool = Batch.from_data_list(parts), pooling()
    out = pool(data.x, data.edge_index, data.edge_weight, data.batch)
    cluster = out.select.cluster_index
    assert torch.equal(out.batch.bincount(minlength=len(parts)), torch.tensor([-(-part.num_nodes // 2) for part in parts]))
    assert torch.equal(cluster.unique(), torch.arange(out.x.size(0)))
    assert torch.equal(out.batch[cluster], data.batch)
    close(out.edge_weight.double().sum().view(1), data.edge_weight.double().sum().view(1))


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


def largest_term(args):
    """Of what the operation may sum, roughly: where sums cancel, what is left is the rounding of their terms."""
    values = [a for a in args if isinstance(a, torch.Tensor) and a.is_floating_point() and a.numel() > 0]
    return math.prod((1 + float(a.detach().abs().amax())) ** 2 for a in values)


def equal(name, ours, theirs, args):
    """Whole numbers must be equal, others up to the rounding of what was summed."""
    for value, wanted in zip(*map(as_tuple, (ours, theirs)), strict=True):
        assert value.dtype == wanted.dtype, name
        if value.is_floating_point():
            close(value, wanted, 1e-5, floor=1e-8 * largest_term(args))
        else:
            assert torch.equal(value, wanted), name


class BesideReferences(TorchDispatchMode):
    """Computes every operation of the package a second time, in plain PyTorch, and compares."""

    def __init__(self, compare=equal):
        super().__init__()
        self.compare = compare

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        out = operation(*args, **(kwargs or {}))
        package, name = operation._schema.name.split("::")
        if package == "torch_gic":
            self.compare(name, out, REFERENCES[name](*args), args)
        return out


def equal_to_the_reference(parts):
    """Every kernel that a step of training calls, both ways, agrees with plain PyTorch. In float64, since differences of large
    numbers are rounding in float32."""
    data, model = Batch.from_data_list(parts), network().double()
    with BesideReferences():
        out = model(data.x.double(), data.edge_index, data.edge_weight.double(), batch=data.batch, batch_size=len(parts))
        out.sum().backward()


PROPERTIES = {
    check.__name__: check for check in (finite, batch_independent, equivariant, exact_clusters, equal_to_the_reference)
}
