"""RESULTS.md: what has been collected, beside what the paper prints. All its figures come from the files of runs."""

import functools
from pathlib import Path

from . import printed
from .experiments import read_all
from .protocols import PROTOCOLS, summarise
from .report_peers import write_attributes, write_mixture, write_peers
from .report_plot import plot_curves, plot_trends
from .report_text import Report, figures, pair
from .report_trends import write_analyses, write_trends
from .vertex_report import write_vertices

HEAD = """# Results

Written by `python -m benchmark.reproduce` from the files of runs in [`FOLDER`](FOLDER); do not edit. All by
cross-validation, with ten folds if no other number is said; accuracy in percent with the standard deviation over the runs
(folds and repeats), under one of three protocols that must not be mixed:

"""
ABOUT = """
Features: the one-hot label and the degree (zero mean, unit variance on the training graphs), or the degree alone where there
are no labels, if nothing else is said. Networks have widths 64, 128, 256 and a fully connected layer of 256. Recipe `default`:
AdamW, learning rate 0.001 falling along a cosine, batches of 32. For the sake of time, epochs are fewer than in the paper
(300), and so may be K and C of the printed network (7 and 7): the tables say so. Minutes: of all runs together, one thread
each, on a machine that was busy with other runs too. `-`: not run. Corrected t-test: paired over the folds, with the variance
that folds of shared training graphs call for (Nadeau and Bengio 2003).

Networks of this package, by name (`--network` of `benchmark.graph_classification`): `GIC` is `GIC(in, out)`, and
`GIC-printed` is `GIC.as_printed(in, out)` with K = C of the table. Table 3 has two more, which are `GIC` but for one thing:
`GIC-flat` does not coarsen, and `GIC-laplacian` does so by the printed kernel. Experiments on a data set may differ in epochs
from one table to the next: figures are to be compared inside a table.
"""

DEGREE = {"labels": "number", "classes": "number and class"}  # by the attributes of a setting
PICTURES = {  # by the name of the file: what it shows, what draws it, of which tables
    "trends.png": ("Accuracy by K = C and by the number of layers", plot_trends, ("table4", "table5")),
    "curves.png": ("Learning curves", plot_curves, ("table1",)),
}


def write_table1(report):
    report.text("## Table 1: graph classification")
    rows = []
    for dataset, cells in report.cells("table1").items():
        theirs = printed.TABLE1[dataset]["GIC"]
        if not any(runs for _, runs in cells.values()):
            command = f"`python -m benchmark.reproduce table1 --datasets {dataset}`"
            rows.append([dataset, "GIC", pair(theirs), f"not run: {command}", *["-"] * 9])
        for network, (setting, runs) in cells.items():
            if not runs:
                continue
            summary = summarise(runs, "paper")
            gap = summary["mean"] - theirs[0]
            reached = "mean" if gap >= 0 else "mean - deviation" if gap >= -theirs[1] else "no"
            ours = (figures(runs, protocol) for protocol in ("paper", "gin"))
            mixture = [setting.num_scales or "default", setting.num_components or "default", setting.max_neighbors or "all"]
            mixture.append(DEGREE[setting.attributes])
            budget = (summary["folds"], setting.epochs, f"{summary['minutes']:.0f}")
            rows.append([dataset, network, pair(theirs), *ours, reached, *mixture, *budget])
    columns = ["", "network", "printed", "`paper`", "`gin`", "`paper` reaches the printed"]
    columns += ["K", "C", "field members", "degree", "folds", "epochs", "minutes"]
    report.table(columns, rows)
    report.text(
        "Networks that were not run on a set are left out. Reaching the printed figure: its `mean`, or that minus its"
        " deviation. Degree as a class: one-hot, one of 32 that are about equally frequent in the training graphs."
    )
    report.text("The printed table in full; all columns but GIC were quoted by the paper from others:")
    names = list(next(iter(printed.TABLE1.values())))
    report.table(["", *names], [[dataset, *map(pair, row.values())] for dataset, row in printed.TABLE1.items()])


def write_recipes(report):
    report.text("## The paper's optimiser")
    report.text("Recipe `paper`: SGD, learning rate 0.1, momentum 0.95, batches of 100, 300 epochs; the network is GIC.")
    rows = []
    for dataset, cells in report.cells("recipes").items():
        for recipe, (setting, runs) in cells.items():
            rows.append([dataset, recipe, figures(runs, "paper"), figures(runs, "gin"), setting.epochs])
    report.table(["", "recipe", "`paper`", "`gin`", "epochs"], rows)


def pictures(report):
    """The pictures of tables with runs, by the name of the file: what it shows, and a function that draws it."""
    found = {}
    for name, (caption, draw, tables) in PICTURES.items():
        cells = [report.cells(table) for table in tables]
        if any(runs for table in cells for row in table.values() for _, runs in row.values()):
            found[name] = caption, functools.partial(draw, *cells)
    return found


def make_report(folder, epochs=None):
    """The text of RESULTS.md, from the runs in a folder alone."""
    report = Report(read_all(folder), epochs)
    protocols = "\n".join(f"- `{name}`: {text}" for name, text in PROTOCOLS.items())
    report.text(HEAD.replace("FOLDER", folder.name) + protocols + "\n" + ABOUT)
    write_table1(report)
    write_vertices(report, folder)
    write_analyses(report)
    write_trends(report)
    write_peers(report)
    write_mixture(report)
    write_attributes(report)
    write_recipes(report)
    drawn = pictures(report)
    if drawn:
        report.text("## Pictures")
    for name, (caption, _) in drawn.items():
        report.text(f"![{caption}]({folder.name}/{name})")
    return "\n".join(report.lines).rstrip() + "\n"


def write_report(folder, epochs=None):
    """Writes RESULTS.md beside the folder, and the pictures into it."""
    path = Path(folder).parent / "RESULTS.md"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(make_report(folder, epochs))
    report = Report(read_all(folder), epochs)
    for name, (_, draw) in pictures(report).items():
        draw(folder / name)
    return path
