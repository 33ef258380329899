"""The sections on use: features of any unit, and what coarsening is worth."""

from collections import defaultdict

from ..common.records import read_lines
from ..common.statistics import mean_and_spread
from ..common.tables import markdown
from .collect import files


def _groups(lines, *names):
    """The results of runs that agree in these parts of their jobs, in the order in which they come."""
    found = defaultdict(list)
    for line in lines:
        found[tuple(line["job"][name] for name in names)].append(line["result"])
    return found


def _percent(results):
    return mean_and_spread([100 * result["test"] for result in results])


def write_units(folder):
    yield "## Features of any unit"
    rows = []
    for dataset, lines in files(folder, "units").items():
        found, epochs = _groups(lines, "network", "unit"), max(line["job"]["epochs"] for line in lines)
        units = sorted({unit for _, unit in found})
        for network in dict.fromkeys(network for network, _ in found):
            scores = [_percent(found[network, unit]) if (network, unit) in found else "-" for unit in units]
            rows.append([dataset, network, *scores, len(found[network, units[0]]), epochs])
    if not rows:
        yield "Not run: `python -m benchmark.nodes.units`, see [the plan](PLAN.md)."
        return
    yield (
        "The README's network, two convolutions with a ReLU between them, by `python -m benchmark.nodes.units`: test accuracy"
        " with features times these factors. Validation nodes choose the epoch."
    )
    yield markdown(["", "layer", *(f"times {unit:g}" for unit in units), "seeds", "epochs"], rows)


def write_worth(folder):
    yield "## Is coarsening worth its time?"
    found = _groups(read_lines(folder / "worth.jsonl"), "dataset", "network", "seconds")
    if not found:
        yield "Not run: `python -m benchmark.worth`, see [the plan](PLAN.md)."
        return
    yield (
        "The same network with and without it, after equal time of the processor in training, by `python -m benchmark.worth`."
        " Few runs only show large differences, and nothing is tested."
    )
    rows = []
    for (dataset, network, seconds), results in found.items():
        steps = sum(result["steps"] for result in results) / len(results)
        cells = _percent(results), results[0]["metric"], f"{seconds:.0f} s", f"{steps:.0f}", len(results)
        rows.append([dataset, network, *cells])
    yield markdown(["", "network", "test", "metric", "time", "steps", "runs"], rows)
