"""The sections on nodes and on use: GICConv beside its peers, features of any unit, and what coarsening is worth."""

from collections import defaultdict

from ..common.command import markdown
from ..common.records import by_network, lines_by_dataset, read_lines
from ..common.statistics import mean_and_spread, spread
from ..nodes.runs import best_trials


def _groups(lines, *names):
    """The results of runs that agree in these parts of their jobs, in the order in which they come."""
    found = defaultdict(list)
    for line in lines:
        found[tuple(line["job"][name] for name in names)].append(line["result"])
    return found


def _percent(results):
    return mean_and_spread([100 * result["test"] for result in results])


def to_the_best(mean, best, runs):
    """How far a mean is from that of the best peer, and whether a standard deviation of that peer covers it."""
    deviation = spread([result["test"] for result in runs.values()]) or 0.0
    reached = "at or above" if mean >= best else "within a deviation" if mean >= best - deviation else "below"
    return f"{100 * (mean - best):+.2f}, {reached}"


def node_results(lines):
    """Of each network: {run: result} of the trial that validation chose, and the number of trials; and the epochs, of which
    the largest number counts."""
    epochs = max(line["job"]["epochs"] for line in lines)
    lines = [line for line in lines if line["job"]["epochs"] == epochs]
    collected = {}
    for network, found in by_network((line["job"], line["result"]) for line in lines).items():
        trials = {tuple(job[name] for name in ("lr", "width", "layers", "dropout")) for job, _ in found}
        collected[network] = best_trials(found), len(trials)
    return collected, epochs


def write_nodes(folder):
    yield "## Nodes: GICConv beside its peers"
    rows = []
    for dataset, lines in lines_by_dataset(folder / "nodes").items():
        networks, epochs = node_results(lines)
        means = {network: sum(r["test"] for r in runs.values()) / len(runs) for network, (runs, _) in networks.items()}
        peers = {network: mean for network, mean in means.items() if not network.startswith("GIC")}
        best = max(peers, key=peers.get) if peers else None
        for network, (runs, trials) in networks.items():
            first = next(iter(runs.values()))
            gap = "-" if best in (None, network) else to_the_best(means[network], means[best], networks[best][0])
            seconds = min(result["seconds"] for result in runs.values())
            row = [
                f"{dataset} [{first['metric']}]",
                network,
                _percent(runs.values()),
                gap,
                f"{seconds:.3f}",
                first["parameters"],
            ]
            rows.append([*row, len(runs), epochs, trials])
    if not rows:
        yield "Not run: `python -m benchmark.nodes`, see [the plan](PLAN.md)."
        return
    yield "In each run validation nodes choose the trial and the epoch. Runs share most of their nodes: nothing is tested."
    yield markdown(["", "network", "test", "to the best peer", "s / epoch", "parameters", "runs", "epochs", "trials"], rows)


def write_units(folder):
    yield "## Features of any unit"
    rows = []
    for dataset, lines in lines_by_dataset(folder / "units").items():
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
