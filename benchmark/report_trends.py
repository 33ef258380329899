"""Tables 3 to 5 of the paper, which take the network apart, and whether their trends are found here too."""

from typing import NamedTuple

from . import printed
from .protocols import compare
from .report_text import compare_folds, difference_text, figures, gain, pair
from .tables import ARCHITECTURES, SIZES


class Analysis(NamedTuple):
    """A table of the paper. Its columns are networks; one is whole, the others are changed in one thing."""

    name: str
    title: str
    labels: dict  # of the columns
    base: object  # the column that the others are compared with
    printed: dict  # {dataset: {column: (mean, deviation)}}

    def others(self):
        return {column: label for column, label in self.labels.items() if column != self.base}


CONVOLUTION_LABELS = {
    "ChebNet-VIGMM": "ChebNet + VI-GMM",
    "GCN-VIGMM": "GCN + VI-GMM",
    "GIC-flat": "GIC without VI-GMM",
    "GIC": "GIC",
    "GIC-laplacian": "GIC, printed kernel",
}
ANALYSES = [
    Analysis(
        "table3",
        "Table 3: convolution and coarsening",
        CONVOLUTION_LABELS,
        "GIC",
        printed.TABLE3,
    ),
    Analysis(
        "table4",
        "Table 4: scales and components of GIC",
        {size: f"K = C = {size}" for size in SIZES},
        7,
        printed.TABLE4,
    ),
    Analysis(
        "table5",
        "Table 5: layers of GIC, of which none, one, two and three are convolutions",
        {depth: f"N = {depth}" for depth in ARCHITECTURES},
        8,
        printed.TABLE5,
    ),
]


def write_analyses(report):
    """In each cell the figure of the paper, then ours under both protocols of the same runs. Then the differences to the
    whole network."""
    for analysis in ANALYSES:
        report.text(f"## {analysis.title}")
        rows, differences = [], []
        for dataset, row in report.cells(analysis.name).items():
            theirs = analysis.printed[dataset]
            minutes = sum(run["seconds"] for _, runs in row.values() for run in runs.values()) / 60
            values = []
            for column in analysis.labels:
                runs = row[column][1]
                ours = f"{figures(runs, 'paper')} / {figures(runs, 'gin')}" if runs else "-"
                values.append(f"{pair(theirs.get(column))}<br>**{ours}**")
            epochs = next(iter(row.values()))[0].epochs
            rows.append([dataset, *values, epochs, f"{minutes:.0f}"])
            differences.append([dataset, *(difference(row, theirs, column, analysis.base) for column in analysis.others())])
        report.text("Printed, and below it ours: `paper` / `gin`.")
        report.table(["", *analysis.labels.values(), "epochs", "minutes"], rows)
        report.text(
            f"Difference to {analysis.labels[analysis.base]}: printed, and below it ours (`gin`) with the p-value of the"
            " corrected t-test over the folds."
        )
        report.table(["", *analysis.others().values()], differences)


def difference(row, theirs, column, base):
    printed_difference = f"{theirs[column][0] - theirs[base][0]:+.2f}" if column in theirs else "-"
    return f"{printed_difference}<br>{gain(row[column][1], row[base][1])}"


def write_trends(report):
    report.text("## Do the trends of the paper hold?")
    report.text(
        "Tables 3 to 5 in short: what a changed network gains or loses beside the whole one, as a mean over the data sets on"
        " which both were run, with the p-value of a t-test over these data sets: printed, and ours (`gin`). Then the data"
        " sets on which ours is worse or better by the tests over the folds above (p < 0.05, of some fifty tests). A trend is"
        " `found` if ours has the sign of the printed one and p < 0.05 over the data sets, `reversed` if it has the other sign"
        " and such a p; else it is `not found`, or `unclear in print` if the printed one has no such p either. With five data"
        " sets, only large or uniform effects have such a p. `-`: not printed, or not yet run on all data sets."
    )
    rows = []
    for analysis in ANALYSES:
        cells = report.cells(analysis.name)
        for column, label in analysis.others().items():
            tests = {dataset: compare_folds(row[column][1], row[analysis.base][1]) for dataset, row in cells.items()}
            tests = {dataset: test for dataset, test in tests.items() if test}
            theirs = {dataset: analysis.printed[dataset] for dataset in tests if column in analysis.printed[dataset]}
            paper = over_datasets({dataset: row[column][0] - row[analysis.base][0] for dataset, row in theirs.items()})
            ours = over_datasets({dataset: test["difference"] for dataset, test in tests.items()})
            signs = [
                ", ".join(name for name, test in tests.items() if sign * test["difference"] > 0 and significant(test)) or "-"
                for sign in (-1, 1)
            ]
            trend = verdict(paper, ours) if len(tests) == len(cells) else "-"
            rows.append([label, difference_text(paper), difference_text(ours), len(tests), *signs, trend])
    report.table(["", "printed", "ours", "data sets", "worse on", "better on", "trend"], rows)


def over_datasets(differences):
    """The mean difference, and its p-values with a data set as one observation; None of no data set."""
    return compare(differences, dict.fromkeys(differences, 0.0), overlap=0)


def significant(test):
    return test["t"] is not None and test["t"] < 0.05


def verdict(paper, ours):
    """Of a trend, by its tests over the data sets in the paper and here."""
    if paper is None:
        return "-"
    if significant(ours):
        return "found" if ours["difference"] * paper["difference"] > 0 else "reversed"
    return "not found" if significant(paper) else "unclear in print"
