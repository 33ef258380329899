"""Every example runs as a user would run it: as a script, on small settings."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(script, *arguments, cwd, fails=False):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / script), *map(str, arguments)], cwd=cwd, capture_output=True, text=True
    )
    assert (done.returncode != 0) == fails, done.stderr
    return done.stderr if fails else done.stdout


def is_picture(path):
    return path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and path.stat().st_size > 10_000


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_help(script, tmp_path):
    assert "--help" in run(script, "--help", cwd=tmp_path)


def test_quickstart(tmp_path):
    out = run("quickstart.py", "--epochs", 2, "--runs", 1, "--graphs", 30, cwd=tmp_path)
    assert [line.split()[0] for line in out.splitlines() if line.startswith("G")] == ["GCN", "GIN", "GIC,", "GIC"]
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


def test_tu_classification_and_going_on(archive, tmp_path):
    settings = ["--dataset", "RINGS", "--data-url", archive, "--folds", 2, "--epochs", 3, "--num-scales", 2]
    settings += ["--num-components", 2, "--architecture", "C(4)-P(0.5)-C(4)-P-FC(4)"]
    out = run("tu_classification.py", *settings, cwd=tmp_path)
    assert re.search(r"RINGS: 2 folds, 3 epochs", out)
    assert re.search(r"paper  \d+\.\d+ ± \d+\.\d+ ", out)
    path = tmp_path / "results" / "RINGS.json"
    results = json.loads(path.read_text())
    assert [len(fold["accuracy"]) for fold in results["folds"].values()] == [3, 3]

    kept = results["folds"].pop("1")
    results["folds"]["0"]["seconds"] = 1234567.0
    path.write_text(json.dumps(results))
    run("tu_classification.py", *settings, cwd=tmp_path)
    again = json.loads(path.read_text())["folds"]
    assert again["0"]["seconds"] == 1234567.0  # not run again
    assert again["1"]["accuracy"] == kept["accuracy"]  # run again, with the same result
    assert "other settings" in run("tu_classification.py", *settings, "--lr", 1, cwd=tmp_path, fails=True)


def test_tu_classification_says_what_to_do_without_data(tmp_path):
    message = run("tu_classification.py", "--data-url", "file:///no/such/folder", cwd=tmp_path, fails=True)
    assert "Could not get MUTAG from file:///no/such/folder" in message
    assert "--data-url file:///path/to/folder" in message
    assert "Traceback" not in message


@pytest.mark.slow
def test_the_demo_keeps_its_promise(tmp_path):
    out = run("quickstart.py", cwd=tmp_path)
    accuracy = {name.strip(): float(value) for name, value in re.findall(r"^(G.{9}) +([\d.]+) ±", out, re.MULTILINE)}
    assert accuracy["GIC"] > 95
    assert max(accuracy["GCN"], accuracy["GIN"], accuracy["GIC, C=1"]) < 62


@pytest.mark.slow
def test_mutag_reaches_90_percent(tmp_path):
    data = os.environ.get("TORCH_GIC_DATA")
    url = [] if data is None else ["--data-url", data if "://" in data else Path(data).resolve().as_uri()]
    out = run("tu_classification.py", *url, "--jobs", os.cpu_count() or 1, cwd=tmp_path)
    assert float(re.search(r"paper  (\d+\.\d+)", out)[1]) >= 90
