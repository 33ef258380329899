"""The benchmarks of nodes and of large graphs, on graphs of a few nodes."""

import argparse
import json
import re

import numpy as np
import pytest
import torch
from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE

from benchmark.common.data import CLASSES, planted_graph
from benchmark.common.records import read_lines
from benchmark.common.training import LOOKS
from benchmark.nodes.runs import DATASETS, NETWORKS, best_trials, load_nodes, make_job
from benchmark.nodes.runs import run as run_job
from benchmark.report.__main__ import make_report
from benchmark.report.nodes import to_the_best
from benchmark.speed import fields
from benchmark.worth import parts


@pytest.fixture
def source(tmp_path):
    """Tolokers and Twitch with a few nodes: a ring each, in stretches of one class."""
    n, generator = 40, np.random.default_rng(0)
    ring = np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1)
    for folder, names in (("heterophilous", ["tolokers"]), ("twitch", ["DE", "EN", "ES", "FR", "PT", "RU"])):
        (tmp_path / folder).mkdir()
        for name in names:
            y = np.arange(n) // 5 % 2
            x = (generator.normal(size=(n, 4)) + 3 * y[:, None]).astype("float32")
            edges = np.concatenate([ring, ring[:, ::-1]])
            masks = np.zeros((3, 10, n), dtype=bool)
            for mask, part in zip(masks, np.split(np.arange(n), [20, 30]), strict=True):
                mask[:, part] = True
            splits = dict(zip(("train_masks", "val_masks", "test_masks"), masks, strict=True))
            arrays = {"node_features": x, "node_labels": y, **splits} if name == "tolokers" else {"features": x, "target": y}
            np.savez(tmp_path / folder / f"{name}.npz", edges=edges, **arrays)
    return argparse.Namespace(root=tmp_path / "data", data_url=tmp_path.as_uri())


SETTINGS = {"width": 8, "layers": 2, "dropout": 0.1, "lr": 0.02}


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("dataset", ["Tolokers", "Twitch"])
def test_runs(source, dataset, network):
    threads = torch.get_num_threads()
    result = run_job(source, make_job(dataset, network, SETTINGS, 20, 3))
    torch.set_num_threads(threads)
    assert result["validation"] > 0.8
    assert result["test"] > 0.7
    assert 1 <= result["epoch"] <= 20
    assert result["metric"] == DATASETS[dataset].metric


@pytest.mark.parametrize("part", ["nodes", "samples"])
def test_worth(source, part, monkeypatch):
    """The time is kept, the weights are those of the best look, and there is something to learn."""
    monkeypatch.setattr(parts, "SEEDS", 8)
    monkeypatch.setattr(parts, "PART_SIZE", 10)
    for network in parts.PARTS[part].networks:
        if network == "sampled neighbours" and not (WITH_PYG_LIB or WITH_TORCH_SPARSE):
            continue
        result = parts.run(source, {"part": part, "dataset": "Tolokers", "network": network, "seconds": 0.5, "run": 0})
        assert result["steps"] >= 1
        assert len(result["curve"]) == LOOKS
        assert result["validation"] == max(result["curve"]) > 0.7


def test_splits(source):
    """Of published splits each run has its own; no node is in two parts of one."""
    data = load_nodes(source, "Tolokers")
    assert (len(data.splits), data.num_features, data.num_classes) == (10, 4, 2)
    parts = [part.nodes for part in data.splits[4]]
    assert torch.cat(parts).unique().numel() == sum(part.numel() for part in parts) == 40
    assert data.splits[0].training.x.mean().abs() < 1e-6  # standardised
    data = load_nodes(source, "Twitch")
    assert data.splits[0].training.edge_index is not data.splits[0].test.edge_index


def test_command_resumes(call, source, tmp_path):
    arguments = ["--datasets", "Tolokers", "--networks", "GICConv", "--runs", 0, 1, "--epochs", 2, "--trials", 2]
    arguments += ["--output", tmp_path / "out", "--root", source.root, "--data-url", source.data_url]
    out = call("benchmark.nodes.__main__", *arguments)
    assert re.search(r"Tolokers +GICConv +[\d.]+ ± [\d.]+ +ROC AUC +2 ", out)
    path = tmp_path / "out" / "nodes" / "Tolokers.jsonl"
    lines = read_lines(path)
    assert len(lines) == 4  # two trials in each run, one of which validation chooses
    for line in lines:
        line["result"]["test"] = 12.345678
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert "1234.57 ± 0.00" in call("benchmark.nodes.__main__", *arguments)  # what was run is not run again
    assert re.search(r"\| Tolokers \[ROC AUC\] +\| +GICConv +\| +1234.57 ± 0.00", make_report(tmp_path / "out"))
    assert "--trials to be at least 1" in call("benchmark.nodes.__main__", *arguments, "--trials", 0, fails=True)


def test_distance_to_the_best_peer():
    runs = {number: {"test": value} for number, value in enumerate((0.8, 0.9))}  # a deviation of 0.0707
    assert to_the_best(0.9, 0.85, runs) == "+5.00, at or above"
    assert to_the_best(0.8, 0.85, runs) == "-5.00, within a deviation"
    assert to_the_best(0.7, 0.85, runs) == "-15.00, below"


def test_validation_chooses():
    numbers = (0, 0.6, 0.9), (0, 0.8, 0.1), (1, 0.7, 0.3), (1, 0.6, 0.9)
    pairs = [({"run": number}, {"validation": validation, "test": test}) for number, validation, test in numbers]
    assert [result["test"] for result in best_trials(pairs).values()] == [0.1, 0.3]


def test_planted_graph():
    data = planted_graph(1000, 20_000, 8)
    assert (data.num_nodes, data.num_edges, data.x.shape) == (1000, 20_000, (1000, 8))
    source, target = data.edge_index
    assert torch.equal((source * 1000 + target).sort().values, (target * 1000 + source).sort().values)
    assert torch.equal(target, target.sort().values)
    inside = (data.y[source] == data.y[target]).double().mean()
    assert 0.75 < inside < 0.88
    degree = torch.bincount(target, minlength=1000)
    assert degree.max() > 5 * degree.double().mean()
    assert int(data.y.max()) + 1 == CLASSES


def test_scale(call, monkeypatch, tmp_path):
    monkeypatch.setattr(fields, "QUICK_SIZES", [100, 200])
    monkeypatch.setattr(fields, "SHORT", 0.0)
    out = call(
        "benchmark.speed.scale", "--quick", "--parts", "fields", "samples", "clusters", "--batches", 1, "--output", tmp_path
    )
    # Of the time with the system's: how the kernel divides so short a time between the two is not exact.
    assert len(re.findall(r"^exponent +\S+ +-?[\d.]+ ", out, re.MULTILINE)) == 2
    path = tmp_path / "scale.json"
    values = json.loads(path.read_text())
    if WITH_TORCH_SPARSE or WITH_PYG_LIB:
        (point,) = [value for name, value in values.items() if name.startswith("samples")]
        assert min(point["seeds per second"].values()) > 0
        assert re.search(r"^GIC +\d+ +[\d.]+ +\d+ ms", out, re.MULTILINE)
    values["fields/3/100"]["seconds"] = 1234.5
    path.write_text(json.dumps(values))
    assert "1234500 ms" in call("benchmark.speed.scale", "--quick", "--parts", "fields", "--output", tmp_path)
    assert "--batches to be at least 1 (got 0)" in call("benchmark.speed.scale", "--batches", 0, fails=True)
