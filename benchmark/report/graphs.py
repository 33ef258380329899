"""The sections on graphs: GIC beside its peers, what each part of GIC is worth, and molecules."""

import statistics
from collections import defaultdict

from ..common.command import markdown
from ..common.records import lines_by_dataset
from ..common.statistics import LEVEL, compare, holm, mean_and_spread
from ..common.training import best
from ..graphs.data import MOLECULES
from ..graphs.networks import PEERS, POOLED, VARIANTS

SHOWN = ["GIC", "GIC, C = 1", *PEERS]  # in the table of all networks
ALL_TEXT = """Accuracy of all networks that were run, the best of each row in bold. A network that was run on fewer folds than
others says so, and is never bold. The next table has the differences, with tests."""
GRAPHS_TEXT = """All behind the same two-layer encoder, or all without it. All have the same trials (learning rate, width,
layers, dropout), judged by a fold that is never tested. Each of the other folds is tested once, at the epoch that validation
graphs chose. Difference: GIC less the network, with the interval of 95 % (corrected resampled t-test, Nadeau and Bengio 2003),
and p after Holm over all tests of this table. Seconds are of an epoch, the least over the folds, one thread, on a machine busy
with other runs too."""
PUBLISHED = """Published for the same molecules of HIV and another scaffold split, with edge features (leaderboard of
ogbg-molhiv, Hu et al. 2020): GCN 76.06 ± 0.97, PNA 79.05 ± 1.32."""


def graph_results(folder, molecules=False):
    """Of each data set and network: {fold: result} of the settings that its trials chose, and these settings. With features
    other than all or without encoder, the name of the data set says so. Of several numbers of epochs the largest counts."""
    collected = {}
    for dataset, lines in lines_by_dataset(folder / "graphs").items():
        if (dataset in MOLECULES) != molecules:
            continue
        groups = defaultdict(lambda: defaultdict(list))
        for line in lines:
            job = line["job"]
            special = [job["features"]] * (job["features"] != "all") + ["no encoder"] * (not job["encoder"])
            title = f"{dataset} ({', '.join(special)})" if special else dataset
            groups[title][job["network"]].append((job, line["result"]))
        for title, networks in groups.items():
            longest = max(job["epochs"] for runs in networks.values() for job, _ in runs)
            for network, runs in networks.items():
                found = _chosen([(job, result) for job, result in runs if job["epochs"] == longest])
                if found:
                    collected.setdefault(title, {})[network] = found
    return collected


def _chosen(runs):
    """The folds of the settings that the trials prefer; without trials, of those that were tested most."""

    def settings(job):
        return {name: job[name] for name in ("lr", "width", "layers", "dropout")}

    trials = [(settings(job), result) for job, result in runs if job["stage"] == "trial"]
    tested = [(settings(job), job, result) for job, result in runs if job["stage"] == "test"]
    if not tested:
        return None
    if trials:
        wanted = best([own for own, _ in trials], [result for _, result in trials])
    else:
        wanted = max((own for own, _, _ in tested), key=[own for own, _, _ in tested].count)
    folds = {job["fold"]: result for own, job, result in tested if own == wanted}
    return (folds, wanted, len(trials) or 1, tested[0][1]["epochs"]) if folds else None


def scores(folds, scale=100):
    """By fold: in percent, or the error of a regression."""
    return {fold: abs(scale * result["test"]) for fold, result in folds.items()}


def comparisons(collected, networks, base="GIC"):
    """Of the base with each network on each set that has both, corrected by Holm over all of them."""
    found = {}
    for dataset, cells in collected.items():
        if base not in cells:
            continue
        for network in networks:
            if network in cells and network != base:
                own, other = cells[base][0], cells[network][0]
                share = next(iter(own.values()))["share"]
                found[dataset, network] = compare(scores(own), scores(other), share)
    return holm(found)


def all_networks(collected):
    """A row for each data set, a column for each network."""
    shown = [network for network in SHOWN if any(network in cells for cells in collected.values())]
    rows = []
    for dataset, cells in collected.items():
        found = {network: cells[network] for network in shown if network in cells}
        if found:
            most, epochs = max(len(folds) for folds, *_ in found.values()), next(iter(found.values()))[3]
            trials = ", ".join(map(str, sorted({trials for _, _, trials, _ in found.values()})))
            rows.append([dataset, most, epochs, trials, *_figures(found, shown, most)])
    return markdown(["", "folds", "epochs", "trials", *shown], rows)


def _figures(found, shown, most):
    """Mean and deviation of each network: the best of those with all folds in bold, the others with their number of folds."""
    values = {network: list(scores(folds).values()) for network, (folds, *_) in found.items()}
    highest = max(statistics.mean(own) for own in values.values() if len(own) == most)
    for network in shown:
        text = mean_and_spread(values[network]) if network in values else "-"
        if len(values.get(network, [])) not in (0, most):
            text += f" ({len(values[network])} of {most} folds)"
        elif network in values and statistics.mean(values[network]) == highest:
            text = f"**{text}**"
        yield text


def difference(found):
    if found is None:
        return "-", "-"
    p = "-" if found.p is None else f"{found.p:.3f}"
    return f"{found.difference:+.2f} [{found.low:+.2f}, {found.high:+.2f}]", p


def graph_table(collected, networks):
    tests, rows = comparisons(collected, networks), []
    for dataset, cells in collected.items():
        for network in networks:
            if network in cells:
                folds, settings, trials, epochs = cells[network]
                first = next(iter(folds.values()))
                seconds = min(result["seconds"] for result in folds.values())
                row = [dataset, network, mean_and_spread(scores(folds).values()), *difference(tests.get((dataset, network)))]
                own = ", ".join(str(value) for value in settings.values())
                rows.append([*row, f"{seconds:.2f}", first["parameters"], len(folds), epochs, trials, own])
    columns = ["", "network", "accuracy", "GIC less it", "p", "s / epoch", "parameters", "folds", "epochs", "trials"]
    return markdown([*columns, "learning rate, width, layers, dropout"], rows) if rows else None


def verdict(tests, peer):
    """On how many sets GIC is significantly better and worse than a peer."""
    tests = [found for (_, network), found in tests.items() if network == peer and found]
    sure = [found for found in tests if found.p is not None and found.p < LEVEL]
    better = sum(found.difference > 0 for found in sure)
    return [peer, len(tests), better, len(sure) - better, sum(found.difference >= 0 for found in tests)]


def write_graphs(folder):
    collected = graph_results(folder)
    yield "## Graphs: GIC beside its peers"
    table = graph_table(collected, ["GIC", *PEERS])
    if table is None:
        yield "Not run: `python -m benchmark.graphs`, see [the plan](PLAN.md)."
        return
    yield ALL_TEXT
    yield all_networks(collected)
    yield GRAPHS_TEXT
    yield table
    tests = comparisons(collected, PEERS)
    rows = [row for row in (verdict(tests, peer) for peer in PEERS) if row[1]]
    if rows:
        yield f"In short (p < {LEVEL} after Holm):"
        columns = ["GIC beside", "sets", "significantly better", "significantly worse", "better or level in the mean"]
        yield markdown(columns, rows)


def write_parts(folder):
    yield "## Does each part of GIC pay?"
    collected = graph_results(folder)
    changed = [network for network in (*VARIANTS, *POOLED) if network != "GIC"]
    if not any(network in cells for cells in collected.values() for network in changed):
        yield 'Not run: `python -m benchmark.graphs --networks "GIC" "GIC, C = 1"` and so on.'
        return
    yield "One thing changed in each line; the difference is what the whole GIC gains over it. As above otherwise."
    yield graph_table(collected, ["GIC", *changed])


def write_molecules(folder):
    yield "## Molecules"
    rows = []
    for dataset, cells in graph_results(folder, molecules=True).items():
        for network, (folds, _, trials, epochs) in cells.items():
            first = next(iter(folds.values()))
            scale = 1 if first["metric"] == "RMSE" else 100
            figures = mean_and_spread(scores(folds, scale).values()), f"{min(r['seconds'] for r in folds.values()):.2f}"
            rows.append([f"{dataset} [{first['metric']}]", network, *figures, first["parameters"], len(folds), epochs, trials])
    if not rows:
        yield "Not run: `python -m benchmark.graphs --datasets ESOL FreeSolv Lipo BACE HIV` (needs rdkit)."
        return
    yield "One scaffold split; the deviation is over seeds alone, so that nothing is tested. RMSE: lower is better."
    if any(row[0].startswith("HIV") for row in rows):
        yield PUBLISHED
    yield markdown(["", "network", "test", "s / epoch", "parameters", "seeds", "epochs", "trials"], rows)
