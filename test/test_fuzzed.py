"""What `make fuzz` has found once: arguments that crashed, hung or gave something else than the reference."""

import random
import sys
from pathlib import Path

import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric.data import Data
from torch_geometric.nn.pool.select import SelectOutput

import torch_gic
from torch_gic import (
    GIC,
    Cluster,
    GaussianAggregation,
    GICConv,
    PreCoarsen,
    ReceptiveFields,
    VIGMMPool,
    cluster,
    receptive_fields,
    walk_counts,
)
from torch_gic.kernels.library import REFERENCES
from torch_gic.loader import ClusterData

sys.path.append(str(Path(__file__).parent))
import fuzz
from fuzz_cases import KEPT
from fuzz_public import PUBLIC
from fuzz_raw import RAW

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
ops = torch.ops.torch_gic


def test_walk_counts_of_too_many_scales():
    with pytest.raises(ValueError, match="'num_scales' to be at most 1024"):
        walk_counts(EDGES, num_scales=2**63 - 1)


@pytest.mark.filterwarnings("ignore:Unable to accurately infer 'num_nodes'")
@pytest.mark.parametrize(
    "function",
    [
        PreCoarsen(0.5),
        Cluster(2),
        ReceptiveFields(),
        lambda data: ClusterData(data, 2),
        lambda data: cluster(data.edge_index, 2),
        lambda data: receptive_fields(data.edge_index),
        lambda data: walk_counts(data.edge_index),
        lambda data: walk_counts(EdgeIndex(data.edge_index)),
    ],
)
def test_nodes_that_nobody_counted(function):
    """A billion, of which two have edges, took a minute and all memory."""
    data = Data(edge_index=torch.tensor([[0, 10**9], [10**9, 0]]))
    with pytest.raises(ValueError, match=r"Expected 'num_nodes', .* \(got node 1000000000 in 'edge_index', and 2 edges"):
        function(data)


def test_nodes_that_somebody_counted(monkeypatch):
    """However many have no edge."""
    monkeypatch.setattr("torch_gic._checks.MAX_NODES_WITHOUT_EDGES", 1)
    counted = Data(edge_index=EDGES, num_nodes=30), Data(edge_index=EDGES, x=torch.zeros(30, 1))
    for data in counted:
        assert PreCoarsen(30)(data).cluster_1.numel() == 30
    assert cluster(EDGES, 2, num_nodes=30).numel() == 30


def test_more_clusters_than_nodes():
    with pytest.raises(ValueError, match=r"'cluster' to be below 3, the number of nodes .got 1000000000"):
        VIGMMPool(None, 0.5)(torch.randn(3, 4), EDGES, cluster=torch.tensor([0, 1, 10**9]))


def test_more_clusters_than_nodes_to_connect():
    """Which took memory for each, and never came back."""
    nodes = torch.arange(2)
    select = SelectOutput(nodes, 2, torch.tensor([0, 2**31 - 2]), 2**31 - 1)
    with pytest.raises(ValueError, match=r"at most 2 clusters .got 2147483647"):
        torch_gic.nn.ClusterConnect()(select, EDGES[:, :0])


@pytest.mark.parametrize("batch", [torch.zeros(1, dtype=torch.long), torch.zeros(3, 1, dtype=torch.long)])
def test_graphs_of_other_nodes_to_read_out(batch):
    with pytest.raises(ValueError, match=r"'batch' to have shape .3., one entry per node"):
        torch_gic.nn.GaussianReadout(4)(torch.randn(3, 4), batch, 2)


def test_nodes_without_weight():
    """The kernel gave them no gradient, the reference NaN."""
    inputs = RAW["responsibility_backward"](random.Random(1))
    assert inputs[1].numel() > 0
    inputs[1][0] = 0
    for function in (ops.responsibility_backward, REFERENCES["responsibility_backward"]):
        with pytest.raises((ValueError, RuntimeError), match="'node_weight' to be positive and finite"):
            function(*inputs)


def test_any_largest_size_of_a_cluster():
    assert torch.equal(cluster(EDGES, 2, max_size=2**63 - 1), cluster(EDGES, 2, max_size=int(EDGES.max()) + 1))


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"index": torch.tensor([0, -1, 1])}, RuntimeError, r"'index' to lie in \[0, 1\]"),
        ({"index": torch.tensor([0, 1, 2]), "dim_size": 2}, ValueError, "invalid 'dim_size'"),
        ({"index": torch.tensor([0, 1])}, ValueError, r"'index' to have shape \[3\], one per member .got \[2\]"),
        ({"index": torch.tensor([0.0, 1.0, 1.0])}, TypeError, "'index' to hold integers"),
        ({"index": torch.tensor([0, 1, 1]), "dim_size": -1}, ValueError, "dim_size"),
        ({"index": torch.tensor([0, 1, 10**9])}, ValueError, r"'index' to number sets from 0 on .got 1000000001 sets of 3"),
    ],
)
def test_sets_of_an_aggregation(given, error, message):
    with pytest.raises(error, match=message):
        GaussianAggregation(4)(torch.randn(3, 4), **given)


def test_graphs_numbered_in_32_bits():
    torch.manual_seed(0)
    model = GIC(4, 2, "C(4)-P(0.5)-C(4)-P").eval()
    x, batch = torch.randn(3, 4), torch.zeros(3, dtype=torch.int32)
    assert torch.equal(model(x, EDGES, batch=batch), model(x, EDGES, batch=batch.long()))
    assert torch.equal(cluster(EDGES, 2, batch=batch), cluster(EDGES, 2))


def test_sparse_arguments():
    with pytest.raises(TypeError, match="'x' to be dense"):
        GICConv(4, 2)(torch.eye(4)[:3].to_sparse(), EDGES)
    with pytest.raises(TypeError, match="Expected dense tensors"):  # which went on for ever
        ops.bounded_norm(torch.eye(4).to_sparse(), 5.0)


def test_raw_operations_look_at_numbers():
    """Memory of others was read, or NaN was computed."""
    row, weight = torch.tensor([0, 1]), torch.tensor([1.0, float("nan")])
    inputs = torch.randn(3, 2), torch.randn(1, 2, 2), torch.ones(1, 2, 2), torch.zeros(1, 2), torch.ones(2, 1)
    for member, rowptr in (([0, 3], [0, 2]), ([0, -1], [0, 2]), ([0, 1], [0, 3, 2])):
        with pytest.raises((RuntimeError, IndexError)):
            ops.gaussian_encode(*inputs, torch.tensor(member), torch.tensor(rowptr))
    if torch_has_kernels():
        with pytest.raises(RuntimeError, match="'weight' to be finite and non-negative"):
            ops.adjacency_powers(row, row, weight, 2, 1, None)
        with pytest.raises(RuntimeError, match="'num_scales' to be from 1 to 1024"):
            ops.adjacency_powers(row, row, torch.ones(2), 2, 2**62, None)


def torch_has_kernels():
    from torch_gic import backend_info

    return backend_info().cpu.startswith("compiled")


def test_everything_is_fuzzed():
    """A new operation, function or class needs arguments in `fuzz_raw.py` or `fuzz_public.py`."""
    names = {*torch_gic.__all__, *torch_gic.nn.__all__, *torch_gic.fields.__all__, "ClusterData"}
    assert names - set(PUBLIC) == {"AnyFields", "VIGMMPoolOutput", "__version__", "backend_info"}  # which take no arguments
    assert set(RAW) == set(REFERENCES)
    assert set(KEPT) <= set(RAW)


def test_the_fuzzer_sees_what_is_wrong(tmp_path, monkeypatch):
    """A crash, a hang, a difference and an unclear error, each made on purpose."""
    cases = tmp_path / "fuzz_cases.py"
    cases.write_text(
        "import os, time, torch\n"
        "from torch_gic.kernels.library import REFERENCES\n"
        "def right(): return torch.ones(1)\n"
        "def crash(): os.kill(os.getpid(), 11)\n"
        "def hang(): time.sleep(1000)\n"
        "def unclear(): raise RuntimeError('something')\n"
        "def different():\n"
        "    REFERENCES['bounded_norm'] = lambda x, bound: (torch.zeros(3, 2),) * 3\n"
        "    torch.ops.torch_gic.bounded_norm(torch.randn(3, 2), 5.0)\n"
        "def case(number): return (right, different, unclear, crash, hang)[number % 5], {}, False, []\n"
    )
    script = tmp_path / "fuzz.py"
    folder = Path(__file__).parent
    script.write_text((folder / "fuzz.py").read_text())
    for name in ("properties.py", "conftest.py", "copied_package.py"):
        (tmp_path / name).write_text((folder / name).read_text())
    monkeypatch.setattr(fuzz, "__file__", str(script))
    monkeypatch.setattr(fuzz, "SILENCE", 10)
    monkeypatch.setenv("PYTHONPATH", str(folder.parent))
    found = {number: kind for start in (0, 4) for kind, number, _ in fuzz.watch(start, 5, 300)}
    assert found == {0: "right", 1: "difference", 2: "unclear", 3: "crash", 4: "hang"}
