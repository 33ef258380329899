"""Every benchmark runs on small settings: once as a user would run it, as a module of the checkout, then in this process."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]


def run(module, *arguments):
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "TQDM_DISABLE": "1"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_conv(archive, tmp_path, call):
    settings = ["--datasets", "RINGS", "--data-url", archive, "--root", tmp_path / "data", "--output", tmp_path]
    settings += ["--parts", "layers", "wide", "kernels", "fields", "--rounds", 1, "--threads", 1, "--graphs", 5]
    out = run("benchmark.conv", *settings)
    assert "RINGS: receptive fields, K = 7" in out
    assert (tmp_path / "conv.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    results = json.loads((tmp_path / "conv.json").read_text())
    assert "(x: times GINConv, times PNAConv)" in out
    assert {"GICConv", "GICConv, C = 1", "GINConv", "PNAConv"} < set(results["layers/RINGS/1 x 38 to 64"])

    results["layers/RINGS/1 x 38 to 64"]["GINConv"] = 1234567.0
    (tmp_path / "conv.json").write_text(json.dumps(results))
    assert "1234567.0 ms" in call("benchmark.conv", *settings)  # what was measured is not measured again
    assert "Delete it, or choose another --output" in call("benchmark.conv", *settings, "--rounds", 2, fails=True)
    assert "--rounds to be at least 1" in call("benchmark.conv", *settings, "--rounds", 0, fails=True)
    if not torch.cuda.is_available():
        assert "Expected a GPU for --device cuda" in call("benchmark.conv", *settings, "--device", "cuda", fails=True)


def test_gpu_cost(call):
    out = call("benchmark.gpu_cost", "--entries", 126)
    assert "126 entries per field" in out
    assert out.count("A training step on") == 4


def test_epoch(archive, tmp_path, call):
    out = call("benchmark.epoch", "--quick", "--dataset", "RINGS", "--data-url", archive, "--root", tmp_path / "data")
    assert re.findall(r"^(G.*?|PNA)  +[\d.]+ s  ", out, re.MULTILINE) == ["GIC", "GIC, C = 1", "GIC.as_printed", "GIN", "PNA"]
    assert re.search(r"^GIN +[\d.]+ s +1.00$", out, re.MULTILINE)
    assert out.count("where the time goes") == 3
    assert "--rounds to be at least 1 (got 0)" in call("benchmark.epoch", "--rounds", 0, fails=True)


def test_help(call):
    modules = ("conv", "epoch", "gpu_cost", "graph_classification", "pooling", "pooling_accuracy", "reproduce", "scale")
    for module in (*modules, "vertex_classification"):
        assert "--help" in call(f"benchmark.{module}", "--help")


@pytest.mark.parametrize("module", ["pooling", "pooling_accuracy", "reproduce"])
def test_help_without_matplotlib(module):
    """Without it, `import matplotlib` fails and nothing finds it."""
    hidden = f"import sys; sys.modules['matplotlib'] = None; sys.argv = ['{module}', '--help']"
    code = f"{hidden}; import runpy; runpy.run_module('benchmark.{module}', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, "--help" in done.stdout) == (0, True), done.stderr


@pytest.fixture
def accuracy(archive, tmp_path):
    """Settings of the shortest run of the pooling benchmark."""
    settings = ["--datasets", "RINGS", "--data-url", archive, "--root", tmp_path / "data", "--output", tmp_path]
    return [*settings, "--epochs", 1, "--hidden", 4, "--seeds", 1, "--folds", 0]


def test_pooling_accuracy(accuracy, tmp_path, call):
    path = tmp_path / "pooling_accuracy.jsonl"
    settings = [*accuracy, "--folds", 0, 9, "--poolers", "vigmm", "random", "none"]
    out = run("benchmark.pooling_accuracy", *settings)
    assert "RINGS, GIN" in out
    assert "RINGS, GIC" in out
    assert (tmp_path / "pooling_accuracy.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(entries) == 12
    assert [entry["config"]["pooler"] for entry in entries[:3]] == ["vigmm", "random", "none"]  # poolings take turns first

    entries[0]["result"]["test"] = entries[6]["result"]["test"] = 12345.678  # what was run is not run again
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries[:-1]))
    assert "1234567.80" in call("benchmark.pooling_accuracy", *settings)
    assert len(path.read_text().splitlines()) == 12
    assert "1234567.80" in call("benchmark.pooling_accuracy", *settings, "--summary")
    other = [*settings, "--epochs", 2]
    assert "has no runs of these settings" in call("benchmark.pooling_accuracy", *other, "--summary", fails=True)
    assert "--ratio to be in (0, 1]" in call("benchmark.pooling_accuracy", *settings, "--ratio", 2, fails=True)


def test_pooling_accuracy_goes_on_after_errors(accuracy, tmp_path, monkeypatch):
    inner = {"train": list(range(10)), "validation": [10, 11]}
    with zipfile.ZipFile(tmp_path / "splits.zip", "w") as file:
        splits = [{"test": [12, 13, 14, 15], "model_selection": [inner]}] * 10
        file.writestr("CHEMICAL/RINGS_full_splits.json", json.dumps(splits))
    (tmp_path / "tgp.py").write_text("raise ImportError('not installed here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    settings = [*accuracy, "--splits", tmp_path / "splits.zip", "--poolers", "mincut", "vigmm", "--folds", 0, 1]
    out = run("benchmark.pooling_accuracy", *settings, "--networks", "GIN", "--readout", "all")
    assert out.count("mincut in GIN on RINGS failed, and is left out where it does: ImportError: not installed here") == 1
    assert "mincut in GIN on RINGS failed in 2 runs" in out
    entries = [json.loads(line) for line in (tmp_path / "pooling_accuracy.jsonl").read_text().splitlines()]
    assert [entry["config"]["splits"] for entry in entries] == ["splits.zip"] * 2


def test_pooling_accuracy_of_tgp(accuracy, tmp_path, call):
    pytest.importorskip("tgp.poolers", exc_type=ImportError)
    poolers = ["mincut", "dmon", "diffpool", "justbalance", "ndp", "kmis", "topk"]
    out = call("benchmark.pooling_accuracy", *accuracy, "--poolers", *poolers, "--readout", "all")
    assert "failed" not in out
    assert len((tmp_path / "pooling_accuracy.jsonl").read_text().splitlines()) == 14


def test_pooling(archive, tmp_path, call):
    settings = ["--datasets", "RINGS", "--data-url", archive, "--root", tmp_path / "data", "--output", tmp_path]
    settings += [
        "--parts",
        "cut",
        "time",
        "reach",
        "precision",
        "--rounds",
        1,
        "--threads",
        1,
        "--cut-vertices",
        20,
        "--trained-graphs",
        1,
    ]
    out = run("benchmark.pooling", *settings)
    assert "Normalised cut, mean over the graphs" in out
    assert "RINGS: 16 graphs, 80 nodes" in out
    assert (tmp_path / "pooling.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    results = json.loads((tmp_path / "pooling.json").read_text())
    needs = {"vigmm": [], "random": [], "metis": ["pymetis"], "spectral": ["sklearn"], "dmon": ["tgp", "sklearn"]}
    for name, packages in needs.items():
        if all(importlib.util.find_spec(package) for package in packages):
            sample = results[f"cut/RINGS/{name}"]["sample"]
            assert sample["graphs"] == 1
            assert 0 <= sample["cut"] <= 1
        else:
            assert f"cut/RINGS/{name}" not in results
    assert results["cut/RINGS/vigmm"]["all"]["used"] == 1
    assert results["cut/RINGS/vigmm"]["all"]["graphs"] in (3, 4, 5)  # rings of 4 and 6 nodes, 20 together

    fine, hidden, coarse, coarsest = results["reach/RINGS/random"]
    assert 0 < fine <= coarse <= coarsest <= 1  # of rings of 4 and 6 nodes: three steps reach all
    assert 0 <= hidden <= 1
    assert all(0 <= value <= 1 for value in results["precision/RINGS/16"])

    results["cut/RINGS/vigmm"]["all"]["cut"] = 12.345
    (tmp_path / "pooling.json").write_text(json.dumps(results))
    assert "12.345" in call("benchmark.pooling", *settings, "--parts", "cut")  # what was measured is not measured again
    assert "--cut-vertices to be at least 1" in call("benchmark.pooling", *settings, "--cut-vertices", 0, fails=True)


def test_pooling_growth():
    point = json.loads(run("benchmark.pooling_growth", "power law", "vigmm", 100, 1))
    assert point["vertices"] == 100
    assert 0 < point["cut"] < 1
    assert point["time"] > 0
