"""The sections on the tables of the paper: printed, and ours beside it."""

import json
from collections import defaultdict

from ..common.command import markdown
from ..common.records import lines_by_dataset
from ..common.statistics import LEVEL, compare, holm, mean_and_spread
from ..paper import tables as printed
from ..paper.__main__ import EXAMPLES, RECIPES, result_path
from ..paper.tables import ABSENT, DEPTHS, MEASURED, PROTOCOLS, SIZES, TABLES, accuracies

SHARE = 1 / 9  # test graphs over training graphs of ten folds


def printed_runs(folder):
    """Of each data set, features and stage: {network: {fold: result}} and the epochs, the largest number of them."""
    collected = defaultdict(lambda: defaultdict(dict))
    epochs = {}
    for dataset, lines in lines_by_dataset(folder / "paper").items():
        for line in sorted(lines, key=lambda line: line["job"]["epochs"]):
            job = line["job"]
            own = dataset, job["features"], job["stage"]
            if job["epochs"] > epochs.get(own, 0):
                collected.pop(own, None)
                epochs[own] = job["epochs"]
            collected[own][job["network"]][job["fold"]] = line["result"]
    return collected, epochs


def pair(figures):
    return "-" if figures is None else f"{figures[0]:.2f}" + ("" if figures[1] is None else f" ± {figures[1]:.2f}")


def ours(runs, protocol):
    return mean_and_spread(accuracies(runs, protocol).values()) if runs else "-"


def write_table1(collected, epochs):
    yield "## Table 1: graph classification"
    rows, reached = [], [0, 0, 0]
    for dataset in TABLES["table1"][1]:
        theirs = printed.TABLE1[dataset]["GIC"]
        networks = collected.get((dataset, "labels", "printed"), {})
        for network in ("GIC", "GIC.as_printed"):
            runs = networks.get(network, {})
            gap = "-"
            if runs:
                values = list(accuracies(runs, "paper").values())
                below = theirs[0] - sum(values) / len(values)
                gap = "mean" if below <= 0 else "within a deviation" if below <= theirs[1] else "no"
            if network == "GIC" and runs:
                reached = [reached[0] + 1, reached[1] + (gap == "mean"), reached[2] + (gap != "no")]
            figures = ours(runs, "paper"), ours(runs, "gin"), gap
            rows.append([dataset, network, pair(theirs), *figures, len(runs), epochs.get((dataset, "labels", "printed"), "-")])
    yield markdown(["", "network", "printed", "`paper`", "`gin`", "reaches the printed", "folds", "epochs"], rows)
    yield (
        f"The default GIC reaches the printed mean on {reached[1]} of {reached[0]} sets that were run, and is within one"
        f" printed deviation on {reached[2]}. {' and '.join(ABSENT)} are not to be had here."
    )
    yield "The printed table in full; all columns but GIC were quoted by the paper from others:"
    names = list(next(iter(printed.TABLE1.values())))
    yield markdown(["", *names], [[dataset, *map(pair, row.values())] for dataset, row in printed.TABLE1.items()])


def write_table2(folder):
    yield "## Table 2: nodes"
    yield (
        "Micro-averaged F1 score at the epoch that validation chooses. `paper` samples 25 and 10 neighbours as GraphSAGE does,"
        " `modern` takes the fields of whole graphs. The circuits have the format of PPI, and are another set."
    )
    rows = []
    for dataset in EXAMPLES:
        paths = [result_path(folder, dataset, recipe) for recipe in RECIPES]
        scores = [f"{json.loads(path.read_text())['test']:.3f}" if path.exists() else "-" for path in paths]
        rows.append([dataset, printed.TABLE2.get(dataset, "-"), *scores])
    yield markdown(["", "printed", "`paper`", "`modern`"], rows)
    yield "By `python -m benchmark.paper table2`; `-`: not run."


def write_trend(title, table, networks, base, collected, epochs):
    """A table of networks by data set: printed figures above ours, and the difference of each to the base over the folds."""
    yield title
    sets = [(dataset, "labels") for dataset in TABLES["table3"][1]] + [(dataset, "all") for dataset in MEASURED]
    rows, tests = [], {}
    for dataset, features in sets:
        found = collected.get((dataset, features, "printed"), {})
        if not any(found.get(network) for network in networks.values()):
            continue
        title = dataset if features == "labels" else f"{dataset}, all features"
        theirs = table.get(dataset, {}) if features == "labels" else {}
        cells = []
        for column, network in networks.items():
            cells.append(
                f"{pair(theirs.get(column))}<br>{ours(found.get(network), 'paper')} / {ours(found.get(network), 'gin')}"
            )
            if network != base and found.get(network) and found.get(base):
                values = [accuracies(found[name], "gin") for name in (base, network)]
                tests[title, network] = compare(*values, SHARE)
        rows.append([title, *cells, epochs[dataset, features, "printed"]])
    if not rows:
        yield "Not run: see [the plan](PLAN.md)."
        return
    yield "Above what is printed, below ours: `paper` / `gin`."
    yield markdown(["", *networks.values(), "epochs"], rows)
    sure = {name: found for name, found in holm(tests).items() if found and found.p is not None and found.p < LEVEL}
    texts = [f"{network} on {name}: {found.difference:+.2f}, p = {found.p:.3f}" for (name, network), found in sure.items()]
    yield (
        f"`{base}` less each other, by `gin`: of {len(tests)} tests {len(sure)} are significant after Holm"
        + (": " + "; ".join(texts) if texts else "") + "."
    )  # fmt: skip


def write_paper(folder):
    collected, epochs = printed_runs(folder)
    yield "# The tables of the paper"
    protocols = "\n".join(f"- `{name}`: {text}" for name, text in PROTOCOLS.items())
    yield (
        "Ten folds, the printed widths, no encoder, fewer epochs than the paper's 300. Which epoch counts is not printed, so"
        f" that two protocols are given, both of which let the test graphs choose:\n\n{protocols}"
    )
    yield from write_table1(collected, epochs)
    yield from write_table2(folder)
    names = {name: name for name in ("ChebNet, VIGMMPool", "GCN, VIGMMPool", "GIC, flat", "GIC.as_printed")}
    names["GIC"] = "GIC, coarsened"
    yield from write_trend("## Table 3: convolution and coarsening", printed.TABLE3, names, names["GIC"], collected, epochs)
    for network in ("GIC", "GIC.as_printed"):
        by_size = {size: f"{network}, K = C = {size}" for size in SIZES}
        title = f"## Table 4: scales and components of {network}"
        yield from write_trend(title, printed.TABLE4, by_size, by_size[7], collected, epochs)
    for network in ("GIC", "GIC.as_printed"):
        by_depth = {depth: f"{network}, N = {depth}" for depth in DEPTHS}
        title = f"## Table 5: layers of {network}"
        yield from write_trend(title, printed.TABLE5, by_depth, by_depth[8], collected, epochs)
