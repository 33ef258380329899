"""Every benchmark runs on small settings: once as a user would run it, as a module of the checkout, then in this process."""

import importlib.util
import json
import re
import subprocess
import sys

import pytest
import torch
from conftest import ROOT, run_module

from benchmark.__main__ import OTHERS, WITH_DATA
from benchmark.worth.parts import PARTS

MODULES = [f"{name}.__main__" if (ROOT / "benchmark" / name).is_dir() else name for name in WITH_DATA + OTHERS]


def test_conv(rings, tmp_path, call):
    settings = ["--datasets", "RINGS", *rings, "--parts", "layers", "wide", "kernels", "fields"]
    settings += ["--rounds", 1, "--threads", 1, "--graphs", 5]
    out = run_module("benchmark.speed.conv", *settings)
    assert "RINGS: receptive fields, K = 7" in out
    path = tmp_path / "results" / "conv.json"
    results = json.loads(path.read_text())
    assert "(x: times GIN, times PNA)" in out
    layers = {"GICConv", "GICConv, C = 1", "GIN", "PNA", "GMMConv", "GATv2", "GraphSAGE", "GCN"}
    assert layers < set(results["layers/RINGS/1 x 38 to 64"])

    results["layers/RINGS/1 x 38 to 64"]["GIN"] = 1234567.0
    path.write_text(json.dumps(results))
    assert "1234567.0 ms" in call("benchmark.speed.conv", *settings)  # what was measured is not measured again
    assert "Delete it, or choose another --output" in call("benchmark.speed.conv", *settings, "--rounds", 2, fails=True)
    assert "--rounds to be at least 1" in call("benchmark.speed.conv", *settings, "--rounds", 0, fails=True)
    if not torch.cuda.is_available():
        assert "Expected a GPU for --device cuda" in call("benchmark.speed.conv", *settings, "--device", "cuda", fails=True)


def test_gpu_cost(call):
    out = call("benchmark.gpu.cost", "--entries", 126)
    assert "126 entries per field" in out
    assert out.count("A training step on") == 4


def test_epoch(rings, call):
    out = call("benchmark.speed.epoch", "--quick", "--dataset", "RINGS", *rings[:4])
    assert re.findall(r"^(G.*?|PNA)  +[\d.]+ s  ", out, re.MULTILINE) == ["GIC", "GIC, C = 1", "GIC.as_printed", "GIN", "PNA"]
    assert re.search(r"^GIN +[\d.]+ s +1.00$", out, re.MULTILINE)
    assert out.count("where the time goes") == 3
    assert "--rounds to be at least 1 (got 0)" in call("benchmark.speed.epoch", "--rounds", 0, fails=True)


@pytest.mark.parametrize("module", MODULES)
def test_help(module, call):
    if module == "gpu.compile":
        pytest.importorskip("triton")
    out = call(f"benchmark.{module}", "--help")
    assert "--help" in out
    assert "--quick" in out


@pytest.mark.parametrize("module", ["pooling", "graphs"])
def test_help_without_matplotlib(module):
    """Without it, `import matplotlib` fails and nothing finds it."""
    hidden = f"import sys; sys.modules['matplotlib'] = None; sys.argv = ['{module}', '--help']"
    code = f"{hidden}; import runpy; runpy.run_module('benchmark.{module}', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, "--help" in done.stdout) == (0, True), done.stderr


def test_what_is_not_installed_is_said(monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "statsmodels" else find_spec(name))
    with pytest.raises(SystemExit, match=r"Not installed: statsmodels\. The benchmarks need"):
        exec((ROOT / "benchmark" / "__init__.py").read_text(), {})


def test_all_of_them(tmp_path):
    """The list, and a piece of what is asked for; an error of one is an error of all."""
    assert "speed.conv" in run_module("benchmark", cwd=tmp_path)
    out = run_module("benchmark", "--quick", "--only", "gpu.cost", cwd=tmp_path)
    assert re.search(r"^gpu.cost +done", out, re.MULTILINE)
    nowhere = "file:///no/such/folder"
    out = run_module("benchmark", "--quick", "--only", "paper", "--data-url", nowhere, cwd=tmp_path, fails=True)
    assert f"Could not get MUTAG from {nowhere}/tudataset" in out
    assert "failed (1)" in out


def test_worth(rings, call, monkeypatch):
    monkeypatch.setitem(PARTS, "graphs", PARTS["graphs"]._replace(datasets={"RINGS": 0.1}))
    out = call("benchmark.worth.__main__", "--parts", "graphs", "--runs", 2, *rings)
    found = re.findall(r"^RINGS +(.*?)  +[\d.]+ ± [\d.]+  +accuracy +2 +0 s", out, re.MULTILINE)
    assert found == list(PARTS["graphs"].networks)
    assert "--seconds to be positive (got -1.0)" in call("benchmark.worth.__main__", "--seconds", -1, fails=True)


def test_pooling(rings, tmp_path, call):
    settings = ["--datasets", "RINGS", *rings, "--parts", "cut", "time", "reach", "precision"]
    settings += ["--rounds", 1, "--threads", 1, "--cut-nodes", 20, "--trained-graphs", 1]
    out = run_module("benchmark.pooling", *settings)
    assert "Normalised cut, mean over the graphs" in out
    assert "RINGS: 16 graphs, 80 nodes" in out
    path = tmp_path / "results" / "pooling.json"
    assert path.with_suffix(".png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    results = json.loads(path.read_text())
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
    path.write_text(json.dumps(results))
    module = "benchmark.pooling.__main__"
    assert "12.345" in call(module, *settings, "--parts", "cut")  # what was measured is not measured again
    assert "--cut-nodes to be at least 1" in call(module, *settings, "--cut-nodes", 0, fails=True)


def test_pooling_growth():
    point = json.loads(run_module("benchmark.pooling.cost", "power law", "vigmm", 100, 1))
    assert point["nodes"] == 100
    assert 0 < point["cut"] < 1
    assert point["time"] > 0
