"""Time and memory of calls, and a file that keeps what has been measured."""

import contextlib
import ctypes
import json
import os
import platform
import statistics
from pathlib import Path

import numpy as np
import torch
from torch.utils.benchmark import Timer

from .command import print_table

LONG = 2.0  # seconds; calls that take longer are repeated only a few times
LONG_ROUNDS = 3


def median_times(calls, rounds, progress):
    """The median time of each call in milliseconds.

    The calls take turns in every round, so that a slow moment of the machine hits all of them. The first round warms up and
    does not count.
    """
    threads = torch.get_num_threads()  # a timer sets 1 if it is not told
    timers = {name: Timer("call()", globals={"call": call}, num_threads=threads) for name, call in calls.items()}
    times = {name: [] for name in calls}
    slow = set()
    for number in range(rounds + 1):
        for name, timer in timers.items():
            if name in slow and number > LONG_ROUNDS:
                continue
            seconds = timer.timeit(1).median
            if number > 0:
                times[name].append(1000 * seconds)
            elif seconds > LONG:
                slow.add(name)
        progress.update()
    return {name: statistics.median(values) for name, values in times.items()}


def print_ratios(title, measured, bases):
    """Times with their ratios to the bases: a row per contender, a column per setting."""
    names = list(dict.fromkeys(name for times in measured.values() for name in times))
    rows = []
    for name in names:
        cells = []
        for times in measured.values():
            ratios = "".join(f" {times[name] / times[base]:6.2f}x" for base in bases)
            cells.append(f"{times[name]:.1f} ms{ratios}" if name in times else "-")
        rows.append([name, *cells])
    print_table(f"{title} (x: times {', times '.join(bases)})", ["", *measured], rows)


def on_gpu():
    return torch.get_default_device().type == "cuda"


def peak_megabytes(call):
    """What the process holds at most during a call, on the device that computes, above what it holds before; None where the
    system does not tell."""
    call()
    if on_gpu():
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        call()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    with resident_peak() as peak:
        call()
    return peak["megabytes"]


@contextlib.contextmanager
def resident_peak():
    """Gives a dictionary, which holds at the end what the process held at most inside, above what it held before, in
    megabytes; None where the system does not tell."""
    peak = {"megabytes": None}
    if platform.system() != "Linux":
        yield peak
        return
    _reset_peak()
    before = _status("VmRSS")
    yield peak
    peak["megabytes"] = (_status("VmHWM") - before) / 1024


def available_megabytes():
    if on_gpu():
        return torch.cuda.mem_get_info()[0] / 2**20
    if platform.system() != "Linux":
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20
    lines = Path("/proc/meminfo").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("MemAvailable")).split()[1]) / 1024


def _reset_peak():
    ctypes.CDLL("libc.so.6").malloc_trim(0)  # gives back what earlier calls left in the heap, which would hide new demand
    Path("/proc/self/clear_refs").write_text("5")  # resets the highest resident size


def _status(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1])


def exponent(sizes, values):
    """What a quantity grows with: the slope of its logarithm over that of the size, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(values), deg=1)[0])


class Results:
    """Measurements by name in a JSON file that is written after each, so that a run goes on where it was stopped.

    Those of other settings, or of another machine, are not gone on with.
    """

    def __init__(self, path, **settings):
        self.path = path
        self.values = json.loads(path.read_text()) if path.exists() else {}
        made_by = {**describe_machine(), **settings}
        if self.values.setdefault("made by", made_by) != made_by:
            raise SystemExit(
                f"{path} was measured by {self.values['made by']}, not by {made_by}.\nDelete it, or choose another --output."
            )
        if len(self.values) > 1:
            print(f"Going on from {path}, which holds {len(self.values) - 1} measurements; delete it to start anew.")

    def get(self, name, measure, *arguments):
        """The measurement of this name: from the file, or made now."""
        if name not in self.values:
            self.values[name] = measure(*arguments)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps(self.values, indent=1) + "\n")
        return self.values[name]


def describe_machine():
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        model = next((line.split(":")[1].strip() for line in info.read_text().splitlines() if "model name" in line), model)
    gpu = {"gpu": torch.cuda.get_device_name(), "cuda": torch.version.cuda or torch.version.hip} if on_gpu() else {}
    return {
        **gpu,
        "processor": model,
        "cores": os.cpu_count(),
        "vectors": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
