"""What many tests share: random graphs, odd graphs that break software, and commands called in this process."""

import importlib
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

# GPU kernels are tested without a GPU, in Triton's interpreter, which has to be chosen before anything imports Triton.
os.environ["TRITON_INTERPRET"] = "1"

import copied_package
import pytest
import torch
from torch_geometric.data import Batch, Data

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))  # for the benchmarks; after what is installed, which is what is tested


def pytest_configure():
    """Some virtual machines announce AMX but do not let it be used: there a bfloat16 product of PyTorch itself ends the
    process. Where it ends one that does nothing else, oneDNN is told to do without, before a test asks it for a product."""
    cpu = Path("/proc/cpuinfo")
    if cpu.exists() and "amx_bf16" in cpu.read_text():
        product = "import torch; torch.nn.functional.linear(*[torch.ones(64, 64, dtype=torch.bfloat16)] * 2)"
        if subprocess.run([sys.executable, "-c", product], stderr=subprocess.DEVNULL).returncode == -signal.SIGILL:
            os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX512_CORE_FP16"


def random_graph(num_nodes=12, num_edges=30, channels=5, seed=0, directed=False, dtype=torch.float64):
    """A random graph with random weights (parallel edges and self-loops among them) and random attributes."""
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(num_nodes, (2, num_edges), generator=generator)
    edge_weight = torch.rand(num_edges, generator=generator, dtype=dtype) + 0.1
    if not directed:
        edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
        edge_weight = edge_weight.repeat(2)
    x = torch.randn(num_nodes, channels, generator=generator, dtype=dtype)
    return Data(x=x, edge_index=edge_index, edge_weight=edge_weight)


def odd_graph(name, channels=5, dtype=torch.float64):
    """One of the graphs in ODD_GRAPHS."""
    edges, num_nodes, weight = ODD_GRAPHS[name]
    edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t().contiguous()
    x = torch.randn(num_nodes, channels, generator=torch.Generator().manual_seed(1), dtype=dtype)
    return Data(x=x, edge_index=edge_index, edge_weight=torch.full((edge_index.size(1),), weight, dtype=dtype))


CLIQUE = [(i, j) for i in range(5) for j in range(5) if i != j]
STAR = [(0, i) for i in range(1, 9)] + [(i, 0) for i in range(1, 9)]
ODD_GRAPHS = {
    "empty": ([], 0, 1.0),
    "one node": ([], 1, 1.0),
    "one loop": ([(0, 0)], 1, 1.0),
    "isolated nodes": ([], 7, 1.0),
    "isolated and joined": ([(0, 1), (1, 0)], 6, 1.0),
    "two parts": ([(0, 1), (1, 0), (2, 3), (3, 2), (3, 4), (4, 3)], 5, 1.0),
    "directed path": ([(0, 1), (1, 2), (2, 3)], 4, 1.0),
    "parallel edges": ([(0, 1), (0, 1), (1, 0), (1, 0)], 3, 1.0),
    "loops": ([(0, 0), (1, 1), (0, 1), (1, 0)], 2, 1.0),
    "clique": (CLIQUE, 5, 1.0),
    "star": (STAR, 9, 1.0),
    "huge weights": (CLIQUE, 6, 1e30),
    "tiny weights": (CLIQUE, 6, 1e-30),
    "zero weights": (CLIQUE, 5, 0.0),
}


@pytest.fixture(params=sorted(ODD_GRAPHS))
def odd(request):
    return odd_graph(request.param)


@pytest.fixture
def graphs():
    """Four graphs of different sizes, one of them without an edge, and their batch."""
    parts = [random_graph(n, e, seed=n) for n, e in ((9, 20), (1, 0), (14, 25), (5, 4))]
    return parts, Batch.from_data_list(parts)


def permute(data, seed=0):
    """The same graph with its nodes in another order: node i becomes node order[i]."""
    order = torch.randperm(data.num_nodes, generator=torch.Generator().manual_seed(seed))
    x = torch.empty_like(data.x)
    x[order] = data.x
    batch = None
    if data.batch is not None:
        batch = torch.empty_like(data.batch)
        batch[order] = data.batch
    return Data(x=x, edge_index=order[data.edge_index], edge_weight=data.edge_weight, batch=batch), order


@pytest.fixture
def archive(tmp_path):
    """A data set in the format of the TU collection: rings of 4 or 6 nodes, with labels and two measured
    attributes, in a zip file."""
    sizes = [4, 6] * 8
    edges, indicator, start = [], [], 1
    for graph, n in enumerate(sizes, start=1):
        ring = [(start + i, start + (i + 1) % n) for i in range(n)]
        edges += ring + [(b, a) for a, b in ring]
        indicator += [graph] * n
        start += n
    files = {
        "A": "\n".join(f"{a}, {b}" for a, b in sorted(edges)),
        "graph_indicator": "\n".join(map(str, indicator)),
        "graph_labels": "\n".join("1" if n == 4 else "-1" for n in sizes),
        "node_labels": "\n".join(str(i % 2) for i in range(len(indicator))),
        "node_attributes": "\n".join(f"{i % 5}.5, {-3 * i}.0" for i in range(len(indicator))),
    }
    with zipfile.ZipFile(tmp_path / "RINGS.zip", "w") as file:
        for name, text in files.items():
            file.writestr(f"RINGS/RINGS_{name}.txt", text + "\n")
    return tmp_path.as_uri()


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Runs a module of the benchmarks, or an example, in this process, which saves imports. Gives what it prints, or its last
    words if it fails."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TQDM_DISABLE", "1")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # all is small

    def call(name, *arguments, fails=False):
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        status = None
        try:
            importlib.import_module(name).main()
        except SystemExit as end:
            status = end.code
        printed = capsys.readouterr()
        assert (status not in (None, 0)) == fails, printed.err
        return f"{status}{printed.err}" if fails else printed.out

    yield call
    torch.set_num_threads(threads)


def run_module(module, *arguments, cwd=ROOT, fails=False):
    """Runs a module of the checkout as a user would, in a process of its own; gives what it prints, or its errors too if it
    fails."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    environment = {**os.environ, "TQDM_DISABLE": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment)
    assert (done.returncode != 0) == fails, done.stderr
    return done.stdout + done.stderr if fails else done.stdout


@pytest.fixture
def rings(archive, tmp_path):
    """Arguments of the benchmarks: where the data set RINGS is, and where results go."""
    (tmp_path / "tudataset").mkdir()
    shutil.move(tmp_path / "RINGS.zip", tmp_path / "tudataset")
    return ["--data-url", archive, "--root", tmp_path / "data", "--output", tmp_path / "results"]


@pytest.fixture
def pure(tmp_path):
    """The package as a wheel without a compiled extension has it."""
    copied_package.copy_package(tmp_path)
    shutil.copytree(ROOT / "csrc", tmp_path / "torch_gic" / "csrc")
    return tmp_path


@pytest.fixture(scope="session")
def reference(tmp_path_factory):
    """What a process says that is told to use the references."""
    folder = tmp_path_factory.mktemp("reference")
    copied_package.copy_package(folder)
    return copied_package.run(folder, TORCH_GIC_KERNELS="reference")
