"""The paper's tables and the report: RESULTS.md says what the files of runs say."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, run_module

from benchmark.common.records import read_lines
from benchmark.common.training import DEFAULT
from benchmark.graphs.runs import make_job
from benchmark.paper.tables import PRINTED, TABLE1, TABLE3, TABLE4, TABLE5, TABLES, accuracies
from benchmark.report.__main__ import make_report
from benchmark.report.graphs import all_networks, comparisons, graph_results

RESULTS = ROOT / "benchmark" / "results"


def test_protocols():
    runs = {fold: {"curves": {"score": curve}} for fold, curve in enumerate(([0.5, 0.75, 1.0], [1.0, 0.75, 0.25]))}
    assert accuracies(runs, "paper") == {0: 100.0, 1: 100.0}
    assert accuracies(runs, "gin") == {0: 50.0, 1: 100.0}  # means 0.75, 0.75, 0.625: the first of the best


def test_printed_table(rings, tmp_path, call):
    command = ["table1", "--datasets", "RINGS", "--networks", "GIC", "GIC, N = 2", "--folds", 0, 1, "--epochs", 2, *rings]
    out = call("benchmark.paper.__main__", *command)
    assert re.search(r"^RINGS +GIC +[\d.]+ ± [\d.]+ +[\d.]+ ± [\d.]+ +2 +2$", out, re.MULTILINE)
    jobs = [line["job"] for line in read_lines(tmp_path / "results" / "paper" / "RINGS.jsonl")]
    assert {job["features"] for job in jobs} == {"labels"}
    assert {job["stage"] for job in jobs} == {"printed"}


def test_table2(call, monkeypatch, tmp_path):
    """The examples are what is run; what is there is not run again, and is in the report."""
    commands = []

    def refuse(command, **options):
        commands.append(command)
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(subprocess, "run", refuse)
    settings = ["--output", tmp_path / "results", "--data-url", "file:///folder"]
    out = call("benchmark.paper.__main__", "table2", *settings)
    assert "table2, PPI, paper: not run" in out
    scripts = [Path(command[1]) for command in commands]
    assert [script.name for script in scripts] == ["ppi.py", "ppi.py", "reddit.py", "reddit.py", "ppi.py", "ppi.py"]
    assert all(script.exists() for script in scripts)
    assert "--dataset circuits" in " ".join(commands[-1])

    (tmp_path / "results" / "paper" / "table2-PPI-paper.json").write_text(json.dumps({"test": 0.12345}))
    commands.clear()
    call("benchmark.paper.__main__", "table2", "--datasets", "PPI", *settings)
    assert len(commands) == 1
    assert re.search(r"\| PPI +\| +0.661 \| +0.123 \| +- \|", make_report(tmp_path / "results"))


def test_printed_figures():
    """Where tables of the paper overlap, they agree: the last columns of tables 3 to 5 are those of table 1."""
    for dataset, row in TABLE3.items():
        assert row["GIC"] == TABLE4[dataset][7] == TABLE5[dataset][8] == TABLE1[dataset]["GIC"]
    assert len(TABLE1) == 12
    assert TABLE1["REDDIT-BINARY"]["DyF"] == (89.51, 1.96)
    assert {network for networks, _ in TABLES.values() for network in networks} <= set(PRINTED)


def write_runs(path, scores, stage="test", settings=DEFAULT, encoder=True, **result):
    """A run for each fold: {network: scores}."""
    path.parent.mkdir(parents=True, exist_ok=True)
    common = {"seconds": 1.0, "parameters": 10, "share": 1 / 8, "metric": "accuracy"}
    common["curves"] = {"loss": [1, 1], "score": [0, 1]}
    with path.open("a") as file:
        for network, values in scores.items():
            for fold, value in enumerate(values):
                job = make_job(path.stem, network, stage, settings, 2, fold, encoder=encoder)
                file.write(json.dumps({"job": job, "result": {**common, "validation": value, "test": value, **result}}) + "\n")


def test_report_of_peers(tmp_path):
    folder = tmp_path / "results"
    other = {**DEFAULT, "width": 32}
    path = folder / "graphs" / "MUTAG.jsonl"
    write_runs(path, {"GIC": [0.9, 0.91, 0.9], "GIN": [0.5, 0.52, 0.5], "GIC, C = 1": [0.9, 0.9, 0.92]})
    write_runs(path, {"GIN": [0.8]}, stage="trial")
    write_runs(path, {"GIN": [0.7]}, stage="trial", settings=other)
    write_runs(path, {"GIN": [0.99, 0.99, 0.99]}, settings=other)  # not what the trials chose
    write_runs(folder / "graphs" / "ESOL.jsonl", {"GIC": [1.25, 1.25]}, metric="RMSE", encoder=False)
    collected = graph_results(folder)
    assert len(collected["MUTAG"]["GIN"][0]) == 3
    found = comparisons({"MUTAG": collected["MUTAG"]}, ["GIN"])["MUTAG", "GIN"]
    assert found.difference == pytest.approx(39.67, abs=0.01)
    assert found.p < 0.05
    report = make_report(folder)
    assert re.search(r"\| MUTAG +\| +GIN +\| +50.67 ± 1.15 \| \+39.67 \[", report)
    assert re.search(r"\| GIN +\| +1 \| +1 \| +0 \| +1 \|", report)
    assert re.search(r"\| ESOL \(no encoder\) \[RMSE\] +\| +GIC +\| +1.25 ± 0.00 \|", report)
    assert len(re.findall(r"^\| MUTAG +\| +GIC, C = 1 \|", report, re.MULTILINE)) == 1  # in the table of parts alone
    run_module("benchmark.report", "--output", folder)
    assert (tmp_path / "RESULTS.md").read_text() == report
    assert sorted(path.name for path in folder.glob("*.png")) == ["curves.png", "intervals.png"]


def test_all_networks_in_one_table(tmp_path):
    """A row for each set with and without encoder; fewer folds are said, and are never the best."""
    path = tmp_path / "graphs" / "MUTAG.jsonl"
    write_runs(path, {"GIC": [0.9, 0.8], "GCN": [0.99], "PNA": [0.7, 0.9]})
    write_runs(path, {"GIC, C = 1": [0.5, 0.5], "GIN": [0.5, 0.7]}, encoder=False)
    lines = all_networks(graph_results(tmp_path)).splitlines()
    header, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    assert header == ["", "folds", "epochs", "trials", "GIC", "GIC, C = 1", "PNA", "GIN", "GCN"]
    settings = ["2", "2", "1"]
    assert rows == [
        ["MUTAG", *settings, "**85.00 ± 7.07**", "-", "80.00 ± 14.14", "-", "99.00 (1 of 2 folds)"],
        ["MUTAG (no encoder)", *settings, "-", "50.00 ± 0.00", "-", "**60.00 ± 14.14**", "-"],
    ]


def test_report_of_nothing(tmp_path):
    report = make_report(tmp_path)
    assert report.count("Not run: ") >= 4
    assert ".png" not in report


def test_results_are_what_the_runs_say():
    """Every figure of RESULTS.md comes from a file of runs in the repository."""
    assert (RESULTS.parent / "RESULTS.md").read_text() == make_report(RESULTS)


@pytest.mark.slow
def test_mutag_reaches_90_percent(tmp_path):
    folder = os.environ.get("TORCH_GIC_DATA")
    url = [] if folder is None else ["--data-url", folder if "://" in folder else Path(folder).resolve().as_uri()]
    settings = [*url, "--root", tmp_path / "data", "--output", tmp_path / "results", "--jobs", os.cpu_count() or 1]
    out = run_module("benchmark.paper", "table1", "--datasets", "MUTAG", "--networks", "GIC", *settings)
    assert float(re.search(r"^MUTAG +GIC +([\d.]+)", out, re.MULTILINE)[1]) >= 90
