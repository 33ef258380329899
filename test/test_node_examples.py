"""The examples on PPI and Reddit, with archives in the format that PyG's own classes read."""

import importlib
import io
import json
import re
import zipfile

import numpy as np
import pytest
import torch
from test_examples import EXAMPLES
from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE

needs_sampler = pytest.mark.skipif(not (WITH_TORCH_SPARSE or WITH_PYG_LIB), reason="needs torch-sparse or pyg-lib")
SMALL = ["--architecture", "C(8)-C(8)-FC(8)"]


def saved(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def ring(first, size):
    return [(first + i, first + (i + 1) % size) for i in range(size)]


@pytest.fixture
def ppi(tmp_path):
    """Three, one and one rings of 30 nodes, in stretches of ten: two of three labels tell the sign of features there."""
    pytest.importorskip("networkx")
    generator = np.random.default_rng(0)
    with zipfile.ZipFile(tmp_path / "ppi.zip", "w") as file:
        for part, graphs in (("train", 3), ("valid", 1), ("test", 1)):
            n = 30 * graphs
            sign = np.repeat([1, -1, 1] * graphs, 10)
            x = sign[:, None] + generator.normal(size=(n, 4))
            y = np.stack([sign > 0, sign < 0, np.ones(n)], axis=1).astype(int)
            edges = [edge for graph in range(graphs) for edge in ring(30 * graph, 30)]
            links = [{"source": a, "target": b} for a, b in edges + [(b, a) for a, b in edges]]
            graph = {"directed": False, "multigraph": False, "graph": {}, "nodes": [{"id": i} for i in range(n)]}
            file.writestr(f"{part}_graph.json", json.dumps({**graph, "links": links}))
            file.writestr(f"{part}_feats.npy", saved(x))
            file.writestr(f"{part}_labels.npy", saved(y))
            file.writestr(f"{part}_graph_id.npy", saved(np.repeat(np.arange(graphs), 30) + 1))
    return ["--data-url", tmp_path.as_uri(), "--root", tmp_path / "data"]


@pytest.fixture
def reddit(tmp_path):
    """Three communities of 40 posts; the features tell the community."""
    sparse = pytest.importorskip("scipy.sparse")
    generator = np.random.default_rng(0)
    n, label = 120, np.repeat(np.arange(3), 40)
    pairs = np.array([(i, j) for i in range(n) for j in range(n) if i != j and label[i] == label[j] and (i + j) % 5 == 0])
    adjacency = sparse.coo_matrix((np.ones(len(pairs)), pairs.T), shape=(n, n))
    types = np.tile([1, 1, 2, 3], n // 4)
    features = np.eye(3)[label] + 0.1 * generator.normal(size=(n, 3))
    graph, data = io.BytesIO(), io.BytesIO()
    sparse.save_npz(graph, adjacency)
    np.savez(data, feature=features, label=label, node_types=types)
    with zipfile.ZipFile(tmp_path / "reddit.zip", "w") as file:
        file.writestr("reddit_graph.npz", graph.getvalue())
        file.writestr("reddit_data.npz", data.getvalue())
    return ["--data-url", tmp_path.as_uri(), "--root", tmp_path / "data"]


def score(out):
    return float(re.search(r"test micro-F1 ([\d.]+), at epoch \d+, which validation chose", out)[1])


@pytest.mark.parametrize("recipe", ["modern", pytest.param("paper", marks=needs_sampler)])
def test_ppi_resumes(call, ppi, tmp_path, monkeypatch, recipe):
    settings = [*ppi, "--recipe", recipe, *SMALL, "--num-scales", 2, "--lr", 0.02, "--epochs", 6]
    settings += ["--batch-size", 1 if recipe == "modern" else 16, "--result", tmp_path / "figures.json"]
    whole = call("ppi", *settings, "--checkpoint", tmp_path / "whole.pt")
    assert score(whole) > 0.87  # the first and the last label for all have 5/6
    assert json.loads((tmp_path / "figures.json").read_text())["settings"]["recipe"] == recipe

    from common.checkpoint import Checkpoint

    save = Checkpoint.save

    def stop(self, **values):
        save(self, **values)
        if values["epoch"] == 3:
            raise SystemExit("killed")

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoint, "save", stop)
        stopped = [*settings, "--checkpoint", tmp_path / "stopped.pt"]
        assert "killed" in call("ppi", *stopped, fails=True)
    resumed = call("ppi", *stopped)
    assert "after epoch 3" in resumed
    lines = [[line for line in out.splitlines() if line.startswith("epoch")] for out in (whole, resumed)]
    assert lines[0][3:] == lines[1]  # as if it had never stopped
    assert score(resumed) == score(whole)
    assert "Delete it, or choose another --checkpoint" in call("ppi", *stopped, "--epochs", 7, fails=True)


@needs_sampler
@pytest.mark.parametrize("recipe", ["modern", "paper"])
def test_reddit(call, reddit, recipe):
    settings = [*reddit, "--recipe", recipe, *SMALL, "--epochs", 16, "--lr", 0.01, "--batch-size", 16]
    assert score(call("reddit", *settings)) > 0.9


def test_reddit_by_clusters(call, reddit):
    settings = [*reddit, "--loader", "cluster", *SMALL, "--epochs", 80, "--lr", 0.01]  # one batch per epoch
    assert score(call("reddit", *settings)) > 0.9


def test_without_data_or_sampler(call, monkeypatch):
    missing = ["--data-url", "file:///no/such/folder"]
    assert "Could not get PPI from file:///no/such/folder/ppi.zip" in call("ppi", *missing, fails=True)
    assert "--epochs to be at least 1 (got 0)" in call("ppi", "--epochs", 0, fails=True)
    nodes = importlib.import_module("common.nodes")
    monkeypatch.setattr(nodes, "WITH_TORCH_SPARSE", False)
    monkeypatch.setattr(nodes, "WITH_PYG_LIB", False)
    assert "Sampling needs pyg-lib or torch-sparse, and neither is installed" in call("reddit", *missing, fails=True)


def test_micro_f1(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from common.nodes import micro_f1

    out = torch.tensor([[1.0, -1.0], [2.0, 3.0], [-1.0, -1.0]])
    y = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    assert micro_f1(out, y) == pytest.approx(2 * 2 / (3 + 3))
    assert micro_f1(out, torch.tensor([0, 1, 0])) == 1
    assert micro_f1(-torch.ones(2, 2), torch.zeros(2, 2)) == 0
