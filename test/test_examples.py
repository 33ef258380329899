"""Every example runs as a user would run it: as a script, on small settings."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(script, *arguments, cwd):
    command = [sys.executable, str(EXAMPLES / script), *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def is_picture(path):
    return path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and path.stat().st_size > 10_000


OPTIONAL = ("graphgym", "lightning_training")  # what they import may be absent, and warns


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_help(script, call):
    if script.stem in OPTIONAL:
        pytest.skip("has a test of its own")
    assert "--help" in call(script.stem, "--help")


def test_quickstart(tmp_path):
    out = run("quickstart.py", "--epochs", 2, "--runs", 1, "--graphs", 60, cwd=tmp_path)
    names = re.findall(r"^(\w+(?:, C = 1)?) +[\d.]+ ± ", out, re.MULTILINE)
    assert names == ["GCN", "GIN", "GraphSAGE", "GMMConv", "PNA", "GICConv, C = 1", "GICConv"]
    assert re.search(r"torch_gic.cluster: \d+ of \d+ edges between 10 parts of at most 55 nodes", out)
    assert is_picture(tmp_path / "quickstart.png")


def test_coarsen_and_look(tmp_path):
    for graph in ("grid", "tree"):
        out = run("coarsen_and_look.py", "--graph", graph, cwd=tmp_path)
        cut, printed = (float(value) for value in re.findall(r"normalised cut ([\d.]+)", out))
        assert cut < 0.7 * printed
        assert is_picture(tmp_path / "coarsening.png")


def test_pool_in_your_model(tmp_path):
    out = run("pool_in_your_model.py", "--epochs", 2, "--graphs", 30, cwd=tmp_path)
    assert "GCN + VIGMMPool(0.25)" in out


def test_unet(tmp_path):
    out = run("unet.py", "--epochs", 2, "--communities", 10, cwd=tmp_path)
    assert "U-Net with VIGMMPool(0.025)" in out


def test_cluster_training(tmp_path):
    out = run("cluster_training.py", "--quick", cwd=tmp_path)
    assert "50 parts of at most 110 nodes" in out
    assert out.count("test accuracy") == 2


def test_lightning(tmp_path):
    pytest.importorskip("lightning", exc_type=ImportError)
    out = run("lightning_training.py", "--epochs", 2, "--graphs", 60, cwd=tmp_path)
    assert re.search(r"test accuracy [\d.]+ %, of the best epoch: \S+ckpt", out)


@pytest.mark.parametrize("network", ["gic", "gnn"])
def test_graphgym(network, tmp_path):
    """The network as a whole, and the layer in GraphGym's own network."""
    pytest.importorskip("yacs")
    pytest.importorskip("pytorch_lightning", exc_type=ImportError)
    settings = ["optim.max_epoch", 2, "model.type", network, "gic.num_components", 2]
    out = run("graphgym.py", "--cfg", EXAMPLES / "graphgym.yml", *settings, cwd=tmp_path)
    assert re.search(r"test: .*'accuracy': [\d.]+", out)
    assert (tmp_path / "results" / "graphgym" / "config.yaml").exists()


def test_explain(tmp_path):
    pytest.importorskip("captum")
    pytest.importorskip("networkx")
    out = run("explain.py", "--quick", cwd=tmp_path)
    assert "the strongest edge joins the marked nodes in" in out
    assert is_picture(tmp_path / "explain.png")


def test_tu_classification(archive, tmp_path):
    settings = ["--dataset", "RINGS", "--data-url", archive, "--epochs", 3, "--num-scales", 2]
    settings += ["--num-components", 2, "--architecture", "C(4)-P(0.5)-C(4)-P-FC(4)"]
    out = run("tu_classification.py", *settings, cwd=tmp_path)
    assert "RINGS: 16 graphs (14, 1, 1 to train, choose and test)" in out
    assert re.search(r"test accuracy [\d.]+%, at epoch [123]", out)


def test_tu_classification_says_what_to_do_without_data(call):
    message = call("tu_classification", "--data-url", "file:///no/such/folder", fails=True)
    assert "Could not get MUTAG from file:///no/such/folder" in message
    assert "--data-url file:///path/to/folder" in message


@pytest.mark.slow
def test_the_demo_keeps_its_promise(tmp_path):
    """GICConv reads more drawings than four of the peers, and about as many as PNA."""
    out = run("quickstart.py", cwd=tmp_path)
    accuracy = {name: float(value) for name, value in re.findall(r"^(\w+) +([\d.]+) ±", out, re.MULTILINE)}
    assert accuracy["GICConv"] > 1 + max(accuracy[name] for name in ("GCN", "GIN", "GraphSAGE", "GMMConv"))
    assert accuracy["GICConv"] > accuracy["PNA"] - 3
