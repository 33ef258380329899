"""Benchmarks of accuracy on graphs: data, splits, networks, statistics, and the report from files of runs."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from test_benchmark import ROOT, data, run  # noqa: F401
from torch_geometric.data import Data
from torch_geometric.datasets import TUDataset

from benchmark.common.data import load_tu
from benchmark.common.records import make_missing, read, read_lines
from benchmark.common.statistics import compare, holm
from benchmark.common.training import score_of
from benchmark.common.tuning import DEFAULT, best, candidates
from benchmark.graphs.data import DEGREE_CLASSES, Graphs, degree_classes, load_graphs
from benchmark.graphs.folds import FOLDS, TUNING, deal, fold_split, printed_split, tuning_split
from benchmark.graphs.molecules import scaffold_split
from benchmark.graphs.networks import NETWORKS, PRINTED, Shape, field_settings
from benchmark.graphs.runs import make_job
from benchmark.paper import printed
from benchmark.paper.tables import TABLES, accuracies
from benchmark.report.__main__ import make_report
from benchmark.report.collect import graph_results
from benchmark.report.peers import comparisons
from torch_gic import receptive_fields

RESULTS = ROOT / "benchmark" / "results"


@pytest.fixture
def source(data, tmp_path):  # noqa: F811
    return argparse.Namespace(data_url=data[1], root=data[3])


def test_corrected_t_test():
    base = {0: 50.0, 1: 60.0, 2: 70.0}
    found = compare({0: 51.0, 1: 62.0, 2: 73.0, 3: 0.0}, base, share=1 / 9)
    assert (found.difference, found.folds) == (2.0, 3)
    assert found.p == pytest.approx(0.0955, abs=1e-4)  # t = 2 / sqrt(1/3 + 1/9) = 3 with two degrees of freedom
    reach = 4.302653 * (1 / 3 + 1 / 9) ** 0.5
    assert (found.low, found.high) == pytest.approx((2 - reach, 2 + reach), abs=1e-5)
    assert compare(base, base, 0.1).p is None
    assert compare({3: 1.0}, base, 0.1) is None


def test_holm():
    found = {name: compare({0: 1.0, 1: 2.0 + name, 2: 3.0}, {0: 0.0, 1: 0.0, 2: 0.0}, 0) for name in range(2)}
    raw = [found[name].p for name in range(2)]
    corrected = [holm({**found, "none": None})[name].p for name in range(2)]
    small = raw.index(min(raw))
    assert corrected[small] == pytest.approx(2 * raw[small])
    assert corrected[1 - small] == pytest.approx(max(raw[1 - small], 2 * raw[small]))
    assert holm({"none": None}) == {"none": None}


def test_scores():
    y, out = torch.tensor([0, 0, 1, 1]), torch.tensor([[0.0, 1.0], [0.0, 2.0], [0.0, 2.0], [0.0, 3.0]])
    assert score_of(out, y, "accuracy") == 0.5
    assert score_of(out, y, "ROC AUC") == 0.875
    with pytest.raises(ValueError, match="two classes"):
        score_of(out, torch.ones(4), "ROC AUC")
    with pytest.raises(ValueError, match="finite outputs"):
        score_of(out * torch.nan, y, "accuracy")
    assert score_of(torch.tensor([[1.0], [3.0]]), torch.tensor([1.0, 1.0]), "RMSE") == pytest.approx(-(2**0.5))


def test_trials():
    assert candidates(1) == [DEFAULT]
    several = candidates(5)
    assert several[0] == DEFAULT
    assert several == candidates(5)  # the same for every network
    assert len({str(settings) for settings in several}) == 5
    assert best(several[:3], [{"validation": 0.5}, {"validation": 0.7}, None]) == several[1]
    assert best(several[:2], [{"validation": 0.5}, {"validation": 0.5}]) == several[0]
    assert best(several[:1], [None]) is None


def test_graphs_equal_those_of_pyg(source):
    graphs = load_graphs(source, "RINGS")
    graphs.scale(torch.arange(16))
    graphs.use_fields((2, False, None))
    whole, chosen = graphs.batch(torch.arange(16)), torch.tensor([5, 2, 9])
    part = graphs.batch(chosen)
    ptr, first = graphs.node_start, 0
    for number, graph in enumerate(chosen.tolist()):
        size = int(ptr[graph + 1] - ptr[graph])
        rows = slice(first, first + size)
        assert torch.equal(part.x[rows], whole.x[ptr[graph] : ptr[graph + 1]])
        assert (part.batch[rows] == number).all()
        for mine, theirs in ((part.edge_index, whole.edge_index), (part.fields.index, whole.fields.index)):
            inside = (theirs[0] >= ptr[graph]) & (theirs[0] < ptr[graph + 1])
            assert torch.equal(mine[:, (mine[0] >= first) & (mine[0] < first + size)] - first, theirs[:, inside] - ptr[graph])
        first += size
    assert part.fields.weight.size(0) == part.fields.index.size(1) == int(part.fields.rowptr[-1])
    same = receptive_fields(part.edge_index, num_nodes=part.x.size(0), num_scales=2)
    torch.testing.assert_close(part.fields.weight, same.weight)
    assert torch.equal(part.fields.rowptr, same.rowptr)
    torch.testing.assert_close(part.pseudo, torch.full((part.edge_index.size(1), 2), 0.5**0.5))  # of degrees, all two


def test_features(source):
    """Measured ones come after label and degree, with zero mean and unit variance on the training graphs."""
    training = torch.tensor([1, 2, 5])
    few, many = (load_graphs(source, "RINGS", features) for features in ("labels", "all"))
    few.scale(training)
    many.scale(training)
    assert (few.num_features, many.num_features) == (few.x.size(1), many.x.size(1)) == (3, 5)
    torch.testing.assert_close(many.x[:, :3], few.x)
    i = torch.arange(80.0)
    measured = torch.stack([i % 5 + 0.5, -3 * i], dim=1)
    known = measured[torch.isin(many.graph, training)]
    torch.testing.assert_close(many.x[:, 3:], (measured - known.mean(dim=0)) / known.std(dim=0))


def test_positions_and_targets():
    """Pseudo-coordinates are differences of positions; a regression predicts what is scaled by the training graphs."""
    edges = torch.tensor([[0, 1], [1, 0]])
    graphs, nothing = [Data(edge_index=edges, num_nodes=2)] * 3, torch.empty(6, 0)
    position = torch.tensor([[0.0, 0.0], [1.0, 2.0]]).repeat(3, 1)
    made = Graphs(graphs, nothing, position, torch.tensor([1.0, 3.0, 100.0]), 1, "RMSE", positions=2)
    made.scale(torch.tensor([0, 1]))
    deviation = position[:4].std()
    torch.testing.assert_close(made.batch(torch.tensor([2])).pseudo, torch.tensor([[-1.0, -2.0], [1.0, 2.0]]) / deviation)
    torch.testing.assert_close(made.batch(torch.tensor([0, 1])).y, torch.tensor([-1.0, 1.0]) / 2**0.5)


def test_degree_classes():
    """Equally frequent where degrees differ, few where they do not, and the same for training and other graphs."""
    known = torch.arange(64.0)
    assert degree_classes(known, known).sum(dim=0).tolist() == [2.0] * DEGREE_CLASSES
    classes = degree_classes(torch.tensor([1.0, 2.0, 3.0, 500.0]), torch.tensor([2.0, 2.0, 2.0, 3.0]))
    assert classes.shape == (4, DEGREE_CLASSES)
    assert (classes.sum(dim=1) == 1).all()
    assert (classes.argmax(dim=1).diff() >= 0).all()


def test_folds():
    y = torch.arange(40) % 2
    tested = []
    for number in range(FOLDS):
        split = fold_split(y, number)
        assert sorted(torch.cat(split).tolist()) == list(range(40))
        assert y[split.test].bincount().tolist() == [2, 2]
        assert split.share == split.test.numel() / split.training.numel()
        tested += split.test.tolist()
        both = printed_split(y, number)
        assert torch.equal(both.test, split.test)
        assert both.training.numel() == 36
    assert sorted(tested) == list(range(40))
    assert torch.equal(tuning_split(y).validation, fold_split(y, TUNING).test)  # judges trials, and is never tested
    assert sorted(torch.cat(tuning_split(y)).tolist()) == list(range(40))
    assert (deal(y, 10, seed=1) != deal(y, 10, seed=2)).any()
    assert np.bincount(deal(np.arange(30) % 10, 10, seed=0)).tolist() == [3] * 10  # classes of three


def test_scaffold_split():
    """Molecules of one scaffold stay together, and the largest groups are trained on."""
    pytest.importorskip("rdkit")
    smiles = [*["C" * (n + 1) + "c1ccccc1" for n in range(8)], "c1ccncc1", "C1CC1"]  # benzene eight times, two others
    training, validation, test = scaffold_split(smiles)
    assert training == list(range(8))
    assert sorted(validation + test) == [8, 9]


@pytest.mark.parametrize("name", [*NETWORKS, *(f"printed {name}" for name in PRINTED)])
def test_networks_train(name, source):
    if name.startswith("GIN, ") and name.split(", ")[1] in (
        "mincut",
        "dmon",
        "diffpool",
        "justbalance",
        "ndp",
        "kmis",
        "topk",
    ):
        pytest.importorskip("tgp.poolers", exc_type=ImportError)
    if name == "GIN, graclus":
        pytest.importorskip("torch_cluster")
    if name == "GIN, metis":
        pytest.importorskip("pymetis")
    graphs, everything = load_graphs(source, "RINGS"), torch.arange(16)
    graphs.scale(everything)
    make = PRINTED[name.removeprefix("printed ")] if name.startswith("printed ") else NETWORKS[name]
    model = make(graphs, everything, Shape(width=8, layers=2))
    graphs.use_fields(field_settings(model))
    out = model(graphs.batch(everything))
    assert out.shape == (16, graphs.num_outputs)
    out.logsumexp(dim=1).sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


def graph_command(data, tmp_path, *more):  # noqa: F811
    settings = ["--datasets", "RINGS", "--networks", "GIC", "GIN", "--trials", 2, "--folds", 0, 1, "--epochs", 2]
    return [*settings, *data, *more]


def test_graphs(data, tmp_path, call):  # noqa: F811
    command = graph_command(data, tmp_path)
    out = run("benchmark.graphs", *command)
    assert re.search(r"^RINGS +GIC +[\d.]+ ± [\d.]+ +accuracy +2 ", out, re.MULTILINE)
    path = tmp_path / "results" / "graphs" / "RINGS.jsonl"
    lines = read_lines(path)
    assert [line["job"]["stage"] for line in lines] == ["trial"] * 4 + ["test"] * 4
    assert [line["job"]["network"] for line in lines[4:]] == ["GIC", "GIN"] * 2  # networks take turns
    first = lines[4]["result"]
    assert len(first["curves"]["loss"]) == len(first["curves"]["score"]) == 2
    assert {"test", "validation", "epoch", "seconds", "parameters", "share"} < set(first)
    assert lines[0]["versions"]["torch"] == torch.__version__

    removed, lines[4]["result"]["test"] = lines.pop(), 12.345
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert "1234.5" not in out
    assert re.search(r"GIC +\d+\.\d\d ± \d{3}\.\d\d", call("benchmark.graphs.__main__", *command, "--jobs", 2))
    again = read_lines(path)[-1]
    assert again["job"] == removed["job"]
    assert again["result"]["curves"] == removed["result"]["curves"]  # run again, with the same result
    assert "--trials to be at least 1" in call("benchmark.graphs.__main__", *command, "--trials", 0, fails=True)


def test_data_that_cannot_be_had(data, tmp_path, call):  # noqa: F811
    command = graph_command(data, tmp_path, "--data-url", "file:///no/such/folder")
    assert "Could not get RINGS from file:///no/such/folder/tudataset" in call(
        "benchmark.graphs.__main__", *command, fails=True
    )


def fail_sometimes(source, job):
    if job["fold"] == 1:
        raise ValueError("not today")
    return {"test": job["fold"]}


def test_runs_that_fail_do_not_end_the_others(tmp_path, capsys):
    jobs = [{"dataset": "ANY", "network": "GIN", "fold": fold} for fold in range(3)]
    assert make_missing(fail_sometimes, None, jobs, tmp_path / "runs.jsonl", 1) == [{"test": 0}, None, {"test": 2}]
    assert "1 runs failed and are left out: GIN on ANY: ValueError: not today" in capsys.readouterr().out
    assert len(read(tmp_path / "runs.jsonl")) == 2


def test_commands_at_a_time_unpack_once(source, monkeypatch):
    made, process = [], TUDataset.process
    monkeypatch.setattr(TUDataset, "process", lambda self: (made.append(1), time.sleep(0.2), process(self)))
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: len(load_tu(source, "RINGS")), range(3)))
    assert (found, len(made)) == ([16, 16, 16], 1)


def test_a_killed_command_leaves_no_process_behind(data, tmp_path):  # noqa: F811
    more = ["--trials", "1", "--epochs", "1000000", "--jobs", "2"]
    command = [sys.executable, "-m", "benchmark.graphs", *map(str, graph_command(data, tmp_path, *more))]
    environment = {name: value for name, value in os.environ.items() if name != "TQDM_DISABLE"}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        seen = ""
        while "0/4" not in seen:  # the progress bar, which ends in no line: now there are processes
            letter = process.stderr.read(1)
            assert letter, seen
            seen += letter
        time.sleep(1)
        process.terminate()
        assert "Stopped; the same command goes on from there" in process.communicate(timeout=60)[1]
        deadline = time.monotonic() + 30
        while _alive(process.pid) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not _alive(process.pid)
    finally:
        if _alive(process.pid):
            os.killpg(process.pid, signal.SIGKILL)


def _alive(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_protocols():
    runs = {fold: {"curves": {"score": curve}} for fold, curve in enumerate(([0.5, 0.75, 1.0], [1.0, 0.75, 0.25]))}
    assert accuracies(runs, "paper") == {0: 100.0, 1: 100.0}
    assert accuracies(runs, "gin") == {0: 50.0, 1: 100.0}  # means 0.75, 0.75, 0.625: the first of the best


def test_printed_table(data, tmp_path, call):  # noqa: F811
    command = ["table1", "--datasets", "RINGS", "--networks", "GIC", "GIC, N = 2", "--folds", 0, 1, "--epochs", 2, *data]
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
    for dataset, row in printed.TABLE3.items():
        gic = printed.TABLE1[dataset]["GIC"]
        assert row["GIC"] == printed.TABLE4[dataset][7] == printed.TABLE5[dataset][8] == gic
    assert list(printed.TABLE1) == printed.DATASETS
    assert printed.TABLE1["REDDIT-BINARY"]["DyF"] == (89.51, 1.96)
    assert {network for networks, _ in TABLES.values() for network in networks} <= set(PRINTED)


def write_runs(path, scores, stage="test", settings=DEFAULT, **result):
    """A run for each fold: {network: scores}."""
    path.parent.mkdir(parents=True, exist_ok=True)
    common = {
        "seconds": 1.0,
        "parameters": 10,
        "share": 1 / 8,
        "metric": "accuracy",
        "curves": {"loss": [1, 1], "score": [0, 1]},
    }
    with path.open("a") as file:
        for network, values in scores.items():
            for fold, value in enumerate(values):
                job = make_job(path.stem, network, stage, settings, 2, fold)
                file.write(json.dumps({"job": job, "result": {**common, "validation": value, "test": value, **result}}) + "\n")


def test_report_of_peers(tmp_path):
    folder = tmp_path / "results"
    other = {**DEFAULT, "width": 32}
    path = folder / "graphs" / "MUTAG.jsonl"
    write_runs(path, {"GIC": [0.9, 0.91, 0.9], "GIN": [0.5, 0.52, 0.5], "GIC, C = 1": [0.9, 0.9, 0.92]})
    write_runs(path, {"GIN": [0.8]}, stage="trial")
    write_runs(path, {"GIN": [0.7]}, stage="trial", settings=other)
    write_runs(path, {"GIN": [0.99, 0.99, 0.99]}, settings=other)  # not what the trials chose
    write_runs(folder / "graphs" / "ESOL.jsonl", {"GIC": [1.25, 1.25]}, metric="RMSE")
    collected = graph_results(folder)
    assert len(collected["MUTAG"]["GIN"][0]) == 3
    found = comparisons({"MUTAG": collected["MUTAG"]}, ["GIN"])["MUTAG", "GIN"]
    assert found.difference == pytest.approx(39.67, abs=0.01)
    assert found.p < 0.05
    report = make_report(folder)
    assert re.search(r"\| MUTAG +\| +GIN +\| +50.67 ± 1.15 \| \+39.67 \[", report)
    assert re.search(r"\| GIN +\| +1 \| +1 \| +0 \| +1 \|", report)
    assert re.search(r"\| ESOL \[RMSE\] +\| +GIC +\| +1.25 ± 0.00 \|", report)
    assert report.count("GIC, C = 1 |") == 1  # in the table of parts alone
    call = subprocess.run(
        [sys.executable, "-m", "benchmark.report", "--output", folder], cwd=ROOT, capture_output=True, text=True
    )
    assert call.returncode == 0, call.stderr
    assert (tmp_path / "RESULTS.md").read_text() == report
    assert sorted(path.name for path in folder.glob("*.png")) == ["curves.png", "intervals.png"]


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
    settings = [
        "--datasets",
        "MUTAG",
        "--networks",
        "GIC",
        *url,
        "--root",
        tmp_path / "data",
        "--output",
        tmp_path / "results",
    ]
    out = run("benchmark.paper", "table1", *settings, "--jobs", os.cpu_count() or 1)
    assert float(re.search(r"^MUTAG +GIC +([\d.]+)", out, re.MULTILINE)[1]) >= 90
