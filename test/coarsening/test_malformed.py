"""What kernels and references refuse alike: operands that are malformed."""

import pytest
import torch

from torch_gic.coarsening import undirected_graph
from torch_gic.coarsening.soft import cut_affinity
from torch_gic.kernels.library import REFERENCES, has_kernel, load_kernels

BATCH = torch.tensor([0, 0, 0, 1, 1])
PATH = torch.tensor([[0, 1, 3], [1, 2, 4]])
NAN, HUGE = float("nan"), 2**62


@pytest.fixture(params=["kernel", "reference"])
def backend(request):
    load_kernels()
    if request.param == "reference":
        return REFERENCES
    if not has_kernel("coarsen", "CPU"):
        pytest.skip("no compiler")
    return {name: getattr(torch.ops.torch_gic, name) for name in REFERENCES}


def graphs():
    return [PATH, torch.ones(3), torch.ones(5).double(), BATCH, 2, 0.5, None, 2, 0, True, None]


def test_coarsen_of_no_nodes_takes_any_size(backend):
    none = torch.empty(0, dtype=torch.long)
    operands = [none.view(2, 0), None, torch.empty(0).double(), none, 1, 0.5, None, 2, 1000, True, None]
    assert [part.numel() for part in backend["coarsen"](*operands)] == [0, 0, 1, 0, 0, 0, 0, 2, 2]


def soft():
    """A right call of soft EM: two graphs of three and two nodes, in two clusters and one."""
    mass = torch.ones(5).double()
    affinity = cut_affinity(undirected_graph(PATH, None, BATCH, 2), mass, BATCH, 2)
    ptr, offset, rank = torch.tensor([0, 3, 5]), torch.tensor([0, 2, 3]), torch.tensor([2, 0, 1, 1, 0])
    return [*affinity, mass, rank, ptr, offset, torch.ones(2).double(), torch.tensor([0, 0, 1, 2, 2]), 3]


def refuses(operation, operands, place, value, message):
    operation(*operands)
    operands[place] = value
    with pytest.raises((RuntimeError, ValueError, TypeError), match=message):
        operation(*operands)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, torch.tensor([[0, 1, 3], [1, 2, 5]]), r"'edge_index' to lie in \[0, 4\] .got 5"),
        (0, torch.tensor([[0, 1, 2], [1, 2, 3]]), "stay inside one graph of 'batch'"),
        (1, torch.tensor([1.0, NAN, 1.0]), "'edge_weight' to be finite and non-negative .got nan"),
        (1, torch.tensor([1.0, -1.0, 1.0]), "'edge_weight' to be finite and non-negative .got -1"),
        (1, torch.tensor([1.0, torch.inf, 1.0]).double(), "'edge_weight' to be finite and non-negative .got inf"),
        (2, torch.tensor([1.0, 0.0, 1.0, 1.0, 1.0]).double(), "'influence' to be positive and finite .got 0"),
        (3, torch.tensor([0, 0, 0, 1, 2]), r"'batch' to lie in \[0, 1\] .got 2"),
        (3, torch.tensor([1, 1, 1, 0, 0]), "'batch' to be sorted"),
        (4, -1, "'num_graphs' to lie in .* .got -1"),
        (4, 2**63 - 1, "'num_graphs' to lie in .* .got 9223372036854775807"),
        (5, 3.0, r"'ratio' to be in \(0, 1\] .got 3"),
        (5, NAN, r"'ratio' to be in \(0, 1\] .got nan"),
        (5, 0.0, r"'ratio' to be in \(0, 1\] .got 0"),
        (6, 0, "'count' to be at least 1 .got 0"),
        (8, -1, "'max_size' to be at least 0 .got -1"),
        (8, 1, "'max_size' to"),
        (10, torch.tensor([0, 0, 0, 2, 2]), "'start' to leave none empty"),
        (10, torch.tensor([0, 1, 2, 2, 2]), "'start'"),
    ],
)
def test_coarsen(backend, place, value, message):
    refuses(backend["coarsen"], graphs(), place, value, message)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"num_passes": 0}, "'num_passes' to be at least 1 .got 0"),
        ({"growth": 1}, r"'growth' to lie in \[2, 1024\] .got 1"),
        ({"growth": 2**40}, r"'growth' to lie in \[2, 1024\] .got 1099511627776"),
    ],
)
def test_coarsen_ends(backend, setting, message):
    with pytest.raises((ValueError, RuntimeError), match=message):
        backend["coarsen"](*graphs(), **setting)


@pytest.mark.parametrize(("place", "value"), [(6, HUGE), (6, 5), (8, 2**31), (8, HUGE), (8, 2**63 - 1)])
def test_coarsen_takes_any_number_above_that_of_nodes(backend, place, value):
    operands, bounded = graphs(), graphs()
    operands[place], bounded[place] = value, 5
    for ours, theirs in zip(backend["coarsen"](*operands), backend["coarsen"](*bounded), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, torch.tensor([1.0, NAN, 1.0, 1.0, 1.0]).double(), "'diagonal' to be finite .got nan"),
        (1, torch.tensor([0, 3, 1, 4, 5, 6]), "'rowptr' to be sorted"),
        (2, torch.tensor([1, 0, 2, 1, 4, 0]), "every edge"),
        (4, torch.tensor([1.0, 0.0, 1.0, 1.0, 1.0]).double(), "'node_weight' to be positive and finite .got 0"),
        (5, torch.tensor([0, 0, 1, 1, 0]), "'rank' to hold"),
        (5, torch.tensor([2, 0, 1, 2, 0]), "'rank' to"),
        (6, torch.tensor([0, 3, 6]), "'ptr' to"),
        (7, torch.tensor([0, 4, 3]), "'offset' to be sorted"),
        (7, torch.tensor([0, 2, HUGE]), "'offset' to"),
        (8, torch.tensor([1.0, torch.inf]).double(), "'beta' to be finite .got inf"),
        (9, torch.tensor([0, 0, 0, 2, 2]), "'cluster' to leave none empty"),
        (9, torch.tensor([0, 1, 2, 2, 2]), "'cluster'"),
    ],
)
def test_soft_em(backend, place, value, message):
    refuses(backend["soft_em"], soft(), place, value, message)


def test_soft_em_of_a_graph_with_loops(backend):
    """Their place is the diagonal: the kernel left them out, the reference counted them."""
    loops = torch.cat([PATH, torch.tensor([[1], [1]])], dim=1)
    operands = soft()
    operands[1:4] = undirected_graph(loops, None, BATCH, 2)
    with pytest.raises((RuntimeError, ValueError), match="'col' to hold no node in its own row"):
        backend["soft_em"](*operands)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, torch.tensor([[0, 1, 3], [1, 2, -1]]), r"'edge_index' to lie in \[0, 4\] .got -1"),
        (1, torch.tensor([0, 0, 1, 2, 3]), r"'cluster' to lie in \[0, 2\] .got 3"),
        (2, -1, "'num_clusters' to lie in .* .got -1"),
        (2, HUGE, "'num_clusters' to lie in"),
    ],
)
def test_cluster_edges(backend, place, value, message):
    refuses(backend["cluster_edges"], [PATH, torch.tensor([0, 0, 1, 2, 2]), 3], place, value, message)


def test_no_clusters_of_no_nodes(backend):
    none = torch.empty(0, dtype=torch.long)
    with pytest.raises((RuntimeError, ValueError), match="'num_clusters' to lie in"):
        backend["cluster_edges"](none.view(2, 0), none, -1)
    assert backend["cluster_edges"](none.view(2, 0), none, 0)[0].shape == (2, 0)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, torch.ones(4, 2), r"'cluster' to have s"),
        (1, torch.tensor([0, 0, 1, 2, 3]), r"'cluster' to lie in \[0, 2\] .got 3"),
        (2, -1, "'num_clusters' to lie in"),
    ],
)
def test_cluster_max(backend, place, value, message):
    refuses(backend["cluster_max"], [torch.ones(5, 2), torch.tensor([0, 0, 1, 2, 2]), 3], place, value, message)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, torch.ones(3, 1), "'grad' to have s"),
        (2, torch.ones(3), "'out' to have"),
        (3, torch.tensor([0, 0, 1, 2, 3]), r"'cluster' to lie in \[0, 2\] .got 3"),
    ],
)
def test_cluster_max_backward(backend, place, value, message):
    operands = [torch.ones(3, 2), torch.ones(5, 2), torch.ones(3, 2), torch.tensor([0, 0, 1, 2, 2])]
    refuses(backend["cluster_max_backward"], operands, place, value, message)
