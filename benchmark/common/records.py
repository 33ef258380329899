"""Runs as lines of JSON, made several at a time; what is in the file is not made again.

A line holds the `job`, all that the run depends on, and its `result`. Curves are lists of numbers.
"""

import json
import platform
import signal
from collections import Counter

import torch
import torch_geometric
from joblib import Parallel, delayed
from tqdm import tqdm

import torch_gic


def key(job):
    return json.dumps(job, sort_keys=True)


def read(path):
    """The results in a file by the key of their job."""
    return {key(line["job"]): line["result"] for line in read_lines(path)}


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def lines_by_dataset(folder):
    """The lines of each file of a folder by its name, which is that of the data set."""
    return {path.stem: read_lines(path) for path in sorted(folder.glob("*.jsonl"))}


def make_missing(run, source, jobs, path, processes):
    """Makes the runs `run(source, job)` that the file has not; gives the results of all jobs, None of those that fail.

    A job that fails does not end the others. Stop at any time: the same command goes on from there.
    """
    known, failures = read(path), Counter()
    missing = [job for job in jobs if key(job) not in known]
    path.parent.mkdir(parents=True, exist_ok=True)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # a command that is killed ends its processes
    try:
        with tqdm(total=len(jobs), initial=len(jobs) - len(missing), unit="run", smoothing=0.1) as progress:
            tasks = (delayed(_attempt)(run, source, job) for job in missing)
            for job, result in Parallel(n_jobs=processes, return_as="generator_unordered")(tasks):
                if isinstance(result, str):
                    failures[f"{job['network']} on {job['dataset']}: {result}"] += 1
                else:
                    known[key(job)] = result
                    with path.open("a") as file:
                        file.write(json.dumps({"job": job, "result": result, "versions": versions()}) + "\n")
                progress.set_postfix_str(f"{job['network']} on {job['dataset']}")
                progress.update()
    except KeyboardInterrupt:
        raise SystemExit("Stopped; the same command goes on from there") from None
    finally:
        signal.signal(signal.SIGTERM, before)
    for message, count in failures.items():
        print(f"{count} runs failed and are left out: {message}")
    return [known.get(key(job)) for job in jobs]


def by_network(pairs):
    """The pairs of a job and its result by the name of the network, without those that failed."""
    found = {}
    for job, result in pairs:
        if result is not None:
            found.setdefault(job["network"], []).append((job, result))
    return found


def _attempt(run, source, job):
    torch.set_num_threads(1)
    try:
        return job, run(source, job)
    except (Exception, SystemExit) as error:
        return job, f"{type(error).__name__}: {error}"


def versions():
    modules = {"torch_gic": torch_gic, "torch": torch, "PyG": torch_geometric}
    return {name: module.__version__ for name, module in modules.items()} | {"Python": platform.python_version()}
