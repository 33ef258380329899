"""The sections on peers: graphs, molecules, what each part of GIC is worth, and nodes."""

from ..common.statistics import LEVEL, compare, holm, mean_and_spread, spread
from ..common.tables import markdown
from ..graphs.molecules import MOLECULES
from ..graphs.networks import PEERS, POOLED, VARIANTS
from .collect import graph_results, node_results

GRAPHS_TEXT = """All behind the same two-layer encoder, or all without it. All have the same trials (learning rate, width,
layers, dropout), judged by a fold that is never tested. Each of the other folds is tested once, at the epoch that validation
graphs chose. Difference: GIC less the network, with the interval of 95 % (corrected resampled t-test, Nadeau and Bengio 2003),
and p after Holm over all tests of this table. Seconds are of an epoch, the least over the folds, one thread, on a machine busy
with other runs too."""


PUBLISHED = """Published for the same molecules of HIV and another scaffold split, with edge features (leaderboard of
ogbg-molhiv, Hu et al. 2020): GCN 76.06 ± 0.97, PNA 79.05 ± 1.32."""


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


def verdict(collected, peer):
    """On how many sets GIC is significantly better and worse than a peer."""
    tests = [found for (_, network), found in comparisons(collected, PEERS).items() if network == peer and found]
    sure = [found for found in tests if found.p is not None and found.p < LEVEL]
    better = sum(found.difference > 0 for found in sure)
    return [peer, len(tests), better, len(sure) - better, sum(found.difference >= 0 for found in tests)]


def write_graphs(folder):
    collected = {name: cells for name, cells in graph_results(folder).items() if name not in MOLECULES}
    yield "## Graphs: GIC beside its peers"
    table = graph_table(collected, ["GIC", *PEERS])
    if table is None:
        yield "Not run: `python -m benchmark.graphs`, see [the plan](PLAN.md)."
        return
    yield GRAPHS_TEXT
    yield table
    rows = [row for row in (verdict(collected, peer) for peer in PEERS) if row[1]]
    if rows:
        yield f"In short (p < {LEVEL} after Holm):"
        yield markdown(
            ["GIC beside", "sets", "significantly better", "significantly worse", "better or level in the mean"], rows
        )


def write_parts(folder):
    yield "## Does each part of GIC pay?"
    collected = {name: cells for name, cells in graph_results(folder).items() if name not in MOLECULES}
    table = graph_table(collected, [*VARIANTS, *POOLED])
    changed = any(network in cells for cells in collected.values() for network in [*list(VARIANTS)[1:], *POOLED])
    if not changed:
        yield 'Not run: `python -m benchmark.graphs --networks "GIC" "GIC, C = 1"` and so on.'
        return
    yield "One thing changed in each line; the difference is what the whole GIC gains over it. As above otherwise."
    yield table


def write_molecules(folder):
    yield "## Molecules"
    collected = {name: cells for name, cells in graph_results(folder).items() if name in MOLECULES}
    rows = []
    for dataset, cells in collected.items():
        scale = 1 if MOLECULES[dataset] == "RMSE" else 100
        for network, (folds, _, trials, epochs) in cells.items():
            first = next(iter(folds.values()))
            figures = mean_and_spread(scores(folds, scale).values()), f"{min(r['seconds'] for r in folds.values()):.2f}"
            rows.append([f"{dataset} [{first['metric']}]", network, *figures, first["parameters"], len(folds), epochs, trials])
    if not rows:
        yield "Not run: `python -m benchmark.graphs --datasets ESOL FreeSolv Lipo BACE HIV` (needs rdkit)."
        return
    yield "One scaffold split; the deviation is over seeds alone, so that nothing is tested. RMSE: lower is better."
    if any(row[0].startswith("HIV") for row in rows):
        yield PUBLISHED
    yield markdown(["", "network", "test", "s / epoch", "parameters", "seeds", "epochs", "trials"], rows)


def to_the_best(mean, best, runs):
    """How far a mean is from that of the best peer, and whether a standard deviation of that peer covers it."""
    deviation = spread([result["test"] for result in runs.values()]) or 0.0
    reached = "at or above" if mean >= best else "within a deviation" if mean >= best - deviation else "below"
    return f"{100 * (mean - best):+.2f}, {reached}"


def write_nodes(folder):
    yield "## Nodes: GICConv beside its peers"
    rows = []
    for dataset, networks in node_results(folder).items():
        means = {network: sum(r["test"] for r in runs.values()) / len(runs) for network, (runs, *_) in networks.items()}
        peers = {network: mean for network, mean in means.items() if not network.startswith("GIC")}
        best = max(peers, key=peers.get) if peers else None
        for network, (runs, trials, epochs) in networks.items():
            first = next(iter(runs.values()))
            gap = "-" if best in (None, network) else to_the_best(means[network], means[best], networks[best][0])
            seconds = min(result["seconds"] for result in runs.values())
            score = mean_and_spread(scores(runs).values())
            row = [f"{dataset} [{first['metric']}]", network, score, gap, f"{seconds:.3f}", first["parameters"]]
            rows.append([*row, len(runs), epochs, trials])
    if not rows:
        yield "Not run: `python -m benchmark.nodes`, see [the plan](PLAN.md)."
        return
    yield "In each run validation nodes choose the trial and the epoch. Runs share most of their nodes: nothing is tested."
    yield markdown(["", "network", "test", "to the best peer", "s / epoch", "parameters", "runs", "epochs", "trials"], rows)
