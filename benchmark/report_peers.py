"""What the paper has not: other networks under the fair protocol, and what the components of the mixture are worth."""

from statistics import fmean

from .protocols import compare, fold_means
from .report_text import entropies, figures, gain, p_value
from .tables import PEERS, SINGLE


def fair_gain(runs, base):
    """The mean difference of `fair` between two experiments, and its p-value; None of an experiment and itself."""
    test = compare(fold_means(runs, "fair"), fold_means(base, "fair")) if base else None
    if test is None or test["t"] is None:
        return None
    return f"{test['difference']:+.2f}, {p_value(test['t'])}"


def validation(runs):
    """The mean accuracy on validation graphs at the epoch that they choose."""
    return f"{100 * fmean(run['validation'] for run in runs.values()):.2f}"


def millions(runs):
    """The number of parameters."""
    return f"{next(iter(runs.values()))['parameters'] / 1e6:.2f}"


def write_peers(report):
    report.text("## Peers, under the fair protocol")
    report.text(
        "Same splits (published, epoch chosen on validation graphs, test graphs seen once), widths, recipe and epochs. Below"
        " each figure: the mean difference to GIC over the folds, with the p-value of the corrected t-test; in brackets, the"
        " mean accuracy on validation graphs at the epoch that they choose."
    )
    rows = []
    for dataset, cells in report.cells("peers").items():
        row = [dataset]
        for network in PEERS:
            runs = cells[network][1]
            cell = figures(runs, "fair")
            if runs:
                cell += f" [{validation(runs)}]"
            row.append("<br>".join(filter(None, [cell, fair_gain(runs, cells["GIC"][1])])))
        rows.append([*row, cells["GIC"][0].epochs])
    report.table(["", *PEERS, "epochs"], rows)


def write_mixture(report):
    report.text("## Does the mixture work?")
    report.text(
        "GIC with its default K, GIC-printed with K = 3. Entropy of Q over log C in each convolution, mean over the folds,"
        " before and after training: 1 means that all components do the same. Difference to one component in the same network"
        " over the folds that both have: of `gin`, with the p-value of the corrected t-test. Networks"
        " that were not run are left out. The degree is a number on all sets."
    )
    rows = []
    for dataset, cells in report.cells("mixture").items():
        for column, (setting, runs) in cells.items():
            if not runs:
                continue
            _, single = cells[f"{setting.network}, C = 1"]
            row = [dataset, column, *(figures(runs, protocol) for protocol in ("paper", "gin")), gain(runs, single)]
            rows.append([*row, millions(runs), *(entropies(runs, when) for when in ("before", "after"))])
    columns = ["", "", "`paper`", "`gin`", "difference to C = 1", "million parameters", "entropy before", "after"]
    report.table(columns, rows)


def write_attributes(report):
    report.text("## With measured attributes, under the fair protocol")
    report.text(
        "By `python -m benchmark.reproduce attributes`: label, degree and the measured features of the data set, all numbers"
        " of zero mean and unit variance on the training graphs; ten stratified folds of our own, a tenth of the other graphs"
        " for validation. Tested once, at the epoch that validation graphs choose. Differences: mean over the folds, with the"
        " p-value of the corrected t-test. Networks that were not run are left out. Seconds: per epoch, one thread, on a"
        " machine that was busy with other runs too."
    )
    rows = []
    for dataset, cells in report.cells("attributes").items():
        for column, (setting, runs) in cells.items():
            if not runs:
                continue
            gains = [fair_gain(runs, cells[base][1]) or "-" for base in (SINGLE, "PNA")]
            seconds = fmean(run["seconds"] for run in runs.values()) / setting.epochs
            rows.append([dataset, column, figures(runs, "fair"), *gains, millions(runs), f"{seconds:.2f}", setting.epochs])
    columns = ["", "network", "`fair`", "difference to GIC, C = 1", "difference to PNA", "million parameters"]
    report.table([*columns, "seconds", "epochs"], rows)
