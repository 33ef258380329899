"""Runs are saved when they are done, and are not repeated, whatever happens to a command."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from conftest import ROOT, run_module
from torch_geometric.datasets import TUDataset

from benchmark.common.data import load_tu
from benchmark.common.records import make_missing, read, read_lines


@pytest.fixture
def command(rings):
    settings = ["--datasets", "RINGS", "--networks", "GIC", "GIN", "--trials", 2, "--folds", 0, 1, "--epochs", 2]
    return [*settings, *rings]


def test_graphs(command, tmp_path, call):
    out = run_module("benchmark.graphs", *command)
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


def test_data_that_cannot_be_had(command, call):
    said = call("benchmark.graphs.__main__", *command, "--data-url", "file:///no/such/folder", fails=True)
    assert "Could not get RINGS from file:///no/such/folder/tudataset" in said


def fail_sometimes(source, job):
    if job["fold"] == 1:
        raise ValueError("not today")
    return {"test": job["fold"]}


def test_runs_that_fail_do_not_end_the_others(tmp_path, capsys):
    jobs = [{"dataset": "ANY", "network": "GIN", "fold": fold} for fold in range(3)]
    assert make_missing(fail_sometimes, None, jobs, tmp_path / "runs.jsonl", 1) == [{"test": 0}, None, {"test": 2}]
    assert "1 runs failed and are left out: GIN on ANY: ValueError: not today" in capsys.readouterr().out
    assert len(read(tmp_path / "runs.jsonl")) == 2


def test_commands_at_a_time_unpack_once(rings, monkeypatch):
    source = argparse.Namespace(data_url=rings[1], root=rings[3])
    made, process = [], TUDataset.process
    monkeypatch.setattr(TUDataset, "process", lambda self: (made.append(1), time.sleep(0.2), process(self)))
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: len(load_tu(source, "RINGS")), range(3)))
    assert (found, len(made)) == ([16, 16, 16], 1)


def test_a_killed_command_leaves_no_process_behind(command):
    more = "--trials", "1", "--epochs", "1000000", "--jobs", "2"
    command = [sys.executable, "-m", "benchmark.graphs", *map(str, command), *more]
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
