"""The harness that regenerates the tables of the paper: protocols by hand-made curves, the rest as a user would run it."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from test_benchmark import ROOT, run
from torch_geometric.datasets import TUDataset

import benchmark
from benchmark import printed
from benchmark.data import load_dataset
from benchmark.experiments import Setting, pack, read, unpack
from benchmark.graph_networks import GIC_NETWORKS, NETWORKS
from benchmark.graphs import DEGREE_CLASSES, degree_classes, load_graphs
from benchmark.protocols import accuracies, compare, fold_means, summarise
from benchmark.report import make_report, write_report
from benchmark.report_text import difference_text
from benchmark.report_trends import difference, over_datasets, verdict
from benchmark.reproduce import summary
from benchmark.splits import load_folds, load_splits, stratified_folds
from benchmark.tables import TABLES, setting
from torch_gic import GIC, receptive_fields

RESULTS = ROOT / "benchmark" / "results"


class Arguments:
    def __init__(self, archive, root):
        self.data_url, self.root = archive, root


def curves(*tests):
    return {f"0.{fold}": {"curves": {"test": pack(test)}, "seconds": 60} for fold, test in enumerate(tests)}


def test_protocols():
    runs = curves([0.5, 0.75, 1.0], [1.0, 0.75, 0.25])
    assert accuracies(runs, "paper") == ({"0.0": 100.0, "0.1": 100.0}, {1, 3})
    assert accuracies(runs, "gin") == ({"0.0": 50.0, "0.1": 100.0}, {1})  # means 0.75, 0.75, 0.625: the first of the best
    assert summarise(runs, "gin") == {
        "mean": 75.0,
        "std": pytest.approx(35.355, abs=1e-3),
        "folds": 2,
        "repeats": 1,
        "minutes": 2,
    }

    repeated = {**curves([0.0, 1.0]), "1.0": {"curves": {"test": pack([0.5, 0.0])}}}
    assert accuracies(repeated, "gin")[0] == {"0.0": 100.0, "1.0": 50.0}  # each repeat has its own epoch

    fair = {"0.0": {"test": 0.5, "epoch": 7, "seconds": 6}}
    assert accuracies(fair, "fair") == ({"0.0": 50.0}, {7})
    assert summarise(fair, "fair")["std"] is None


def test_compare():
    base = {"0.0": 50.0, "0.1": 60.0, "0.2": 70.0}
    found = compare({"0.0": 51.0, "0.1": 62.0, "0.2": 73.0, "0.3": 0.0}, base)
    assert (found["difference"], found["pairs"]) == (2.0, 3)
    assert found["t"] == pytest.approx(0.0955, abs=1e-4)  # t = 2 / sqrt(1/3 + 1/9) = 3 with two degrees of freedom
    assert compare(base, base) == {"difference": 0.0, "t": None, "wilcoxon": None, "pairs": 3}
    assert compare({"1.0": 1.0}, base) is None


def test_repeats_of_a_fold_count_once():
    runs = {"0.0": {"test": 0.5, "epoch": 1}, "1.0": {"test": 0.75, "epoch": 1}, "0.1": {"test": 1.0, "epoch": 1}}
    assert fold_means(runs, "fair") == {"0": 62.5, "1": 100.0}


def test_difference():
    row = {1: (None, curves([0.5, 0.25], [0.5, 0.25])), 3: (None, {}), 7: (None, curves([0.5, 0.75], [0.5, 1.0]))}
    theirs = {1: (60.0, 2.0), 7: (70.5, 1.0)}
    assert difference(row, theirs, 1, 7) == "-10.50<br>**-37.50**, p = 0.225"  # t = 3 / sqrt(1 + 2/9), one degree
    assert difference(row, theirs, 3, 7) == "-<br>-"


def test_trends():
    faint = over_datasets({"MUTAG": -3.0, "PTC": -1.0, "NCI1": -2.0})
    assert difference_text(faint) == "-2.00, p = 0.074"  # t = 2 sqrt(3) with two degrees of freedom
    worse = over_datasets({"MUTAG": -6.0, "PTC": -5.0, "NCI1": -6.0})
    better = over_datasets({"MUTAG": 6.0, "PTC": 5.0, "NCI1": 6.0})
    verdicts = [verdict(worse, ours) for ours in (worse, better, faint)]
    assert verdicts == ["found", "reversed", "not found"]
    assert [verdict(paper, faint) for paper in (faint, None)] == ["unclear in print", "-"]
    assert verdict(faint, worse) == "found"
    assert difference_text(over_datasets({"MUTAG": -6.0})) == "-6.00"  # no test of a single data set
    assert difference_text(over_datasets({})) == "-"


def test_curves_keep_their_numbers():
    assert unpack(pack([0.5, 1 / 3, 0.0])).tolist() == pytest.approx([0.5, 1 / 3, 0.0], abs=1e-7)


def test_graphs_equal_those_of_pyg(archive, tmp_path):
    graphs = load_graphs(Arguments(archive, tmp_path), "RINGS", num_scales=2)
    graphs.scale(torch.arange(16))
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


def test_attributes(archive, tmp_path):
    """Measured ones come after label and degree, with zero mean and unit variance on the training graphs."""
    training = torch.tensor([1, 2, 5])
    few, many = (load_graphs(Arguments(archive, tmp_path), "RINGS", attributes=name) for name in ("labels", "all"))
    few.scale(training)
    many.scale(training)
    assert (few.num_features, many.num_features) == (few.x.size(1), many.x.size(1)) == (3, 5)
    torch.testing.assert_close(many.x[:, :3], few.x)
    i = torch.arange(80.0)
    measured = torch.stack([i % 5 + 0.5, -3 * i], dim=1)
    known = measured[torch.isin(many.graph, training)]
    torch.testing.assert_close(many.x[:, 3:], (measured - known.mean(dim=0)) / known.std(dim=0))


def test_degree_classes():
    """Equally frequent where degrees differ, few where they do not, and the same for training and other graphs."""
    known = torch.arange(64.0)
    counts = degree_classes(known, known).sum(dim=0)
    assert counts.tolist() == [2.0] * DEGREE_CLASSES
    classes = degree_classes(torch.tensor([1.0, 2.0, 3.0, 500.0]), torch.tensor([2.0, 2.0, 2.0, 3.0]))
    assert classes.shape == (4, DEGREE_CLASSES)
    assert (classes.sum(dim=1) == 1).all()
    assert (classes.argmax(dim=1).diff() >= 0).all()


def test_folds(tmp_path):
    y = torch.arange(40) % 2
    for split in load_folds(None, "ANY", y):
        assert sorted(torch.cat([split.training, split.test]).tolist()) == list(range(40))
        assert y[split.test].bincount().tolist() == [2, 2]
        assert split.validation is None
    for split in load_splits(None, "ANY", y):
        assert sorted(torch.cat(split).tolist()) == list(range(40))
    assert (stratified_folds(y.numpy(), 10, seed=1) != stratified_folds(y.numpy(), 10, seed=2)).any()

    path = tmp_path / "folds.zip"
    with zipfile.ZipFile(path, "w") as file:
        for k in range(1, 11):
            file.writestr(f"ANY/train_idx-{k}.txt", "0\n1\n2\n")
            file.writestr(f"ANY/test_idx-{k}.txt", "3\n" if k < 10 else "2\n")
    with pytest.raises(SystemExit, match="does not split the 40 graphs of ANY"):
        load_folds(path, "ANY", y)
    with pytest.raises(SystemExit, match="OTHER/train_idx-1"):
        load_folds(path, "OTHER", y)


def needs(network):
    if network in ("GIN-MinCut", "GIN-TopK"):
        pytest.importorskip("tgp.poolers", exc_type=ImportError)


@pytest.mark.parametrize("network", NETWORKS)
def test_networks_train(network, archive, tmp_path):
    needs(network)
    is_gic = network in GIC_NETWORKS
    graphs = load_graphs(Arguments(archive, tmp_path), "RINGS", 2 if is_gic else None)
    everything = torch.arange(16)
    graphs.scale(everything)
    mixture = {"num_scales": 2, "num_components": 2} if is_gic else {}
    model = NETWORKS[network](graphs, everything, Setting("RINGS", network, False, 1, **mixture))
    data = graphs.batch(everything)
    fields = {"fields": data.fields} if is_gic else {}
    out = model(data.x, data.edge_index, batch=data.batch, batch_size=16, **fields)
    assert out.shape == (16, graphs.num_classes)
    out.logsumexp(dim=1).sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


def test_flat_network_pads_with_zeros(archive, tmp_path):
    graphs = load_graphs(Arguments(archive, tmp_path), "RINGS", 1)
    graphs.scale(torch.arange(16))
    setting = Setting("RINGS", "GIC-flat", False, 1, num_scales=1, num_components=1)
    model = NETWORKS["GIC-flat"](graphs, None, setting).eval()
    data = graphs.batch(torch.arange(16))
    vertices = model.gic(data.x, data.edge_index, batch=data.batch, fields=data.fields)
    padded = []
    model.classifier.register_forward_pre_hook(lambda _, arguments: padded.append(arguments[0]))
    model(data.x, data.edge_index, batch=data.batch, batch_size=16, fields=data.fields)
    rows = padded[0].view(16, model.num_nodes, -1)
    for number in range(16):
        own = vertices[data.batch == number]
        torch.testing.assert_close(rows[number, : len(own)], own)
        assert (rows[number, len(own) :] == 0).all()


def classification(archive, tmp_path):
    settings = ["--dataset", "RINGS", "--data-url", archive, "--root", tmp_path / "data", "--output", tmp_path / "results"]
    settings += ["--epochs", 2, "--num-scales", 2, "--num-components", 2, "--folds", 0, 1, "--architecture", "C(4)-P-FC(4)"]
    return ["benchmark.graph_classification", *settings]


def test_graph_classification(archive, tmp_path, call):
    command = classification(archive, tmp_path)
    out = run(*command, "--protocol", "paper")
    assert re.search(r"RINGS, GIC, protocol paper: [\d.]+ ± [\d.]+ %  \(folds: 2, repeats: 1, epochs: 2", out)
    (path,) = (tmp_path / "results").glob("graphs-RINGS-GIC-*.json")
    content = json.loads(path.read_text())
    assert content["setting"]["architecture"] == "C(4)-P-FC(4)"
    assert content["setting"]["attributes"] == "labels"
    first = content["runs"]["0.0"]
    assert len(unpack(first["curves"]["test"])) == len(unpack(first["curves"]["loss"])) == 2
    assert all(0 <= value <= 1 for value in first["entropy"]["before"] + first["entropy"]["after"])
    assert first["versions"]["torch"] == torch.__version__

    content["runs"]["0.0"]["seconds"] = 6000.0
    removed = content["runs"].pop("0.1")
    path.write_text(json.dumps(content))
    assert re.search(r"; 100\.\d minutes", call(*command, "--protocol", "gin"))  # not run again: the same runs
    assert read(path)["0.1"]["curves"] == removed["curves"]  # run again, with the same result

    call(*command, "--protocol", "fair", "--jobs", 2)
    assert len(list((tmp_path / "results").glob("graphs-RINGS-GIC-*.json"))) == 2  # never mixed
    assert "--num-scales to be at least 1" in call(*command, "--num-scales", 0, fails=True)
    message = call(*command, "--data-url", "file:///no/such/folder", "--root", tmp_path / "new", fails=True)
    assert "Could not get RINGS from file:///no/such/folder" in message


def test_what_is_not_installed_is_said(monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "scipy" else find_spec(name))
    with pytest.raises(SystemExit, match=r'Not installed: scipy. The benchmarks need: pip install "\.\[benchmark\]"'):
        importlib.reload(benchmark)


def test_commands_at_a_time_unpack_data_once(archive, tmp_path, monkeypatch):
    made, download = [], TUDataset.download

    def slow_download(dataset):
        made.append(dataset)
        time.sleep(0.2)  # the others arrive
        download(dataset)

    monkeypatch.setattr(TUDataset, "download", slow_download)
    arguments = Arguments(archive, tmp_path / "data")
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: len(load_dataset(arguments, "RINGS")), range(3)))
    assert (found, len(made)) == ([16, 16, 16], 1)


def test_a_killed_command_leaves_no_process_behind(archive, tmp_path):
    command = [sys.executable, "-m", *map(str, classification(archive, tmp_path)), "--epochs", "1000000"]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        seen = ""
        while "0/2" not in seen:  # the progress bar, which ends in no line: now there are processes
            letter = process.stderr.read(1)
            assert letter, seen
            seen += letter
        process.terminate()
        assert "Stopped with 0 of 2 runs; the same command goes on from there" in process.communicate(timeout=60)[1]
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


def test_reproduce_without_data(tmp_path, call):
    settings = ["--output", tmp_path / "results", "--root", tmp_path / "data", "--data-url", "file:///no/such/folder"]
    out = call("benchmark.reproduce", "table1", "--datasets", "MUTAG", *settings)
    assert "table1, MUTAG: not run. Could not get MUTAG" in out
    report = (tmp_path / "RESULTS.md").read_text()
    assert "| MUTAG | GIC | 94.44 ± 4.30 | not run: `python -m benchmark.reproduce table1 --datasets MUTAG`" in report
    assert ".png" not in report
    assert json.loads(call("benchmark.reproduce", "--summary", "json", *settings)) == {}
    assert "Expected table2 or one of" in call("benchmark.reproduce", "table9", *settings, fails=True)
    assert "fair_comparison_splits.zip" in call("benchmark.reproduce", "peers", *settings, fails=True)


def test_summary_prefers_the_default_network(tmp_path):
    """And of its experiments the one of a table."""
    default = setting("MUTAG")
    content = {"GIC-printed": setting("MUTAG", "GIC-printed"), "GIC": default, "longer": default._replace(epochs=500)}
    for name, accuracy in (("GIC-printed", 0.5), ("longer", 0.25), ("GIC", 0.75)):
        path = content[name].path(tmp_path)
        path.write_text(json.dumps({"setting": content[name]._asdict(), "runs": curves([accuracy])}))
        found = summary(tmp_path)["MUTAG"]
        assert found["paper"]["mean"] == found["gin"]["mean"] == 100 * accuracy
        assert found["paper"]["network"] == content[name].network
    path.unlink()
    assert summary(tmp_path)["MUTAG"]["paper"]["mean"] == 25.0
    quick = [default._replace(epochs=2), setting("MUTAG", scales=7, components=7)._replace(epochs=2)]  # of a table, and not
    for trial, accuracy in zip(quick, (0.5, 0.6), strict=True):
        trial.path(tmp_path).write_text(json.dumps({"setting": trial._asdict(), "runs": curves([accuracy])}))
    assert summary(tmp_path, epochs=2)["MUTAG"]["paper"]["mean"] == 50.0
    measured = default._replace(attributes="all", epochs=900)  # other attributes than the paper's do not count
    measured.path(tmp_path).write_text(json.dumps({"setting": measured._asdict(), "runs": curves([1.0])}))
    assert summary(tmp_path)["MUTAG"]["paper"]["mean"] == 25.0


def test_pictures_of_what_was_run(tmp_path):
    folder = tmp_path / "results"
    folder.mkdir()
    trial = setting("MUTAG", "GIC-printed")
    runs = {key: {**run, "curves": {**run["curves"], "loss": pack([1.0, 0.5])}} for key, run in curves([0.5, 0.75]).items()}
    trial.path(folder).write_text(json.dumps({"setting": trial._asdict(), "runs": runs}))
    report = write_report(folder).read_text()
    assert "![Learning curves](results/curves.png)" in report
    assert "trends.png" not in report
    assert [path.name for path in folder.glob("*.png")] == ["curves.png"]


def test_the_same_network_is_the_same_experiment():
    default = GIC(1, 1).layers[0]
    said = setting("MUTAG", scales=default.num_scales, components=default.num_components)
    assert said == setting("MUTAG") != setting("MUTAG", components=default.num_components + 1)


def test_printed_figures():
    """Where tables of the paper overlap, they agree: the last columns of tables 3 to 5 are those of table 1."""
    for dataset, row in printed.TABLE3.items():
        gic = printed.TABLE1[dataset]["GIC"]
        assert row["GIC"] == printed.TABLE4[dataset][7] == printed.TABLE5[dataset][8] == gic
    assert list(printed.TABLE1) == printed.DATASETS
    assert printed.TABLE1["REDDIT-BINARY"]["DyF"] == (89.51, 1.96)


def test_results_are_what_the_runs_say():
    """Every figure of RESULTS.md comes from a file of runs in the repository."""
    assert (RESULTS.parent / "RESULTS.md").read_text() == make_report(RESULTS)


def test_settings_have_files_of_their_own():
    settings = {setting for make, datasets in TABLES.values() for dataset in datasets for setting in make(dataset).values()}
    assert len({setting.path(Path()) for setting in settings}) == len(settings)


@pytest.mark.slow
def test_mutag_reaches_90_percent(tmp_path):
    data = os.environ.get("TORCH_GIC_DATA")
    url = [] if data is None else ["--data-url", data if "://" in data else Path(data).resolve().as_uri()]
    settings = ["--dataset", "MUTAG", *url, "--root", tmp_path / "data", "--output", tmp_path / "results"]
    out = run("benchmark.graph_classification", *settings, "--jobs", os.cpu_count() or 1)
    assert float(re.search(r"protocol paper: ([\d.]+)", out)[1]) >= 90
