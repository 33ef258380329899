"""The report as text: sections and tables of Markdown, and what stands in their cells."""

from .protocols import compare, fold_means, percent, summarise
from .tables import TABLES


class Report:
    """Markdown, section by section."""

    def __init__(self, runs, epochs):
        self.runs = runs
        self.epochs = epochs  # in place of those of the tables: a quick trial
        self.lines = []

    def text(self, text):
        self.lines += [text.strip(), ""]

    def table(self, columns, rows):
        if not rows:
            self.text("Nothing of this has been run.")
            return
        lines = [columns, ["---"] * len(columns), *rows]
        self.lines += [*(f"| {' | '.join(map(str, line))} |" for line in lines), ""]

    def cells(self, name):
        """The settings and the runs of a table: {dataset: {column: (setting, runs)}}, runs empty where there are none."""
        make, datasets = TABLES[name]
        cells = {}
        for dataset in datasets:
            settings = make(dataset)
            if self.epochs:
                settings = {column: setting._replace(epochs=self.epochs) for column, setting in settings.items()}
            cells[dataset] = {column: (setting, self.runs.get(setting, {})) for column, setting in settings.items()}
        return cells


def figures(runs, protocol):
    if not runs:
        return "-"
    summary = summarise(runs, protocol)
    counts = {"fold": (summary["folds"], 10), "repeat": (summary["repeats"], 1)}
    unusual = [f"{count} {name}{'s' * (count > 1)}" for name, (count, usual) in counts.items() if count != usual]
    return percent(summary["mean"], summary["std"]) + (f" ({', '.join(unusual)})" if unusual else "")


def pair(printed_figures):
    return "-" if printed_figures is None else percent(*printed_figures)


def compare_folds(runs, base):
    """Two experiments by `gin`; None of an experiment and itself, and where one has not been run."""
    return compare(fold_means(runs, "gin"), fold_means(base, "gin")) if runs and base and runs is not base else None


def gain(runs, base):
    """The mean difference of `gin` between two experiments, and its p-value."""
    return difference_text(compare_folds(runs, base), mark="**")


def difference_text(test, mark=""):
    """The mean difference of a comparison, and its p-value if there is one."""
    if test is None:
        return "-"
    return f"{mark}{test['difference']:+.2f}{mark}" + ("" if test["t"] is None else f", {p_value(test['t'])}")


def p_value(p):
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def entropies(runs, when):
    layers = [run["entropy"][when] for run in runs.values() if "entropy" in run]
    if not layers:
        return "-"
    return ", ".join(f"{sum(values) / len(values):.2f}" for values in zip(*layers, strict=True))
