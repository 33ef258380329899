"""The pictures of RESULTS.md."""

import numpy as np

from . import printed
from .experiments import unpack
from .picture import pyplot
from .protocols import summarise

STYLES = [("black", "o"), ("dimgrey", "s"), ("#0072b2", "^"), ("#d55e00", "D"), ("#009e73", "v")]


def plot_trends(table4, table5, path):
    """Accuracy against K = C and against the number of layers: ours by lines, the printed ones by dotted lines."""
    plt = pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), sharey=True, layout="constrained")
    panels = [(table4, printed.TABLE4, "scales and components, K = C"), (table5, printed.TABLE5, "layers, N")]
    for axis, (table, theirs, label) in zip(axes, panels, strict=True):
        for (dataset, cells), (color, marker) in zip(table.items(), STYLES, strict=False):
            known = {column: summarise(runs, "paper")["mean"] for column, (_, runs) in cells.items() if runs}
            axis.plot(list(known), list(known.values()), color=color, marker=marker, label=dataset)
            figures = {column: pair[0] for column, pair in theirs[dataset].items()}
            axis.plot(
                list(figures), list(figures.values()), color=color, marker=marker, mfc="white", linestyle=":", linewidth=1
            )
            axis.set_xticks(list(figures))
        axis.set_xlabel(label)
        axis.grid(color="lightgrey", linewidth=0.5)
    axes[0].set_ylabel("accuracy [%], protocol paper")
    axes[1].legend(title="filled: ours\ndotted: printed", loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(path, dpi=120)
    plt.close(figure)


def plot_curves(table1, path):
    """The mean test accuracy and training loss over the folds after each epoch."""
    known = {}
    for dataset, cells in table1.items():
        for network, (_, runs) in cells.items():
            if runs:  # of the default network, which comes first, or else of the other one
                known.setdefault(dataset, (network, runs))
    plt = pyplot()
    columns = min(4, len(known))
    rows = -(-len(known) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(3.4 * columns, 2.8 * rows), squeeze=False, layout="constrained")
    for axis in axes.flat[len(known) :]:
        axis.set_axis_off()
    for axis, (dataset, (network, runs)) in zip(axes.flat, known.items(), strict=False):
        test, loss = (np.stack([unpack(run["curves"][name]) for run in runs.values()]) for name in ("test", "loss"))
        epochs = np.arange(1, test.shape[1] + 1)
        mean, std = 100 * test.mean(axis=0), 100 * test.std(axis=0)
        axis.fill_between(epochs, mean - std, mean + std, color="lightgrey", label="its standard deviation over the folds")
        axis.plot(epochs, mean, color="black", label="test accuracy")
        axis.axhline(printed.TABLE1[dataset]["GIC"][0], color="black", linestyle=":", linewidth=1, label="printed")
        other = axis.twinx()
        other.plot(epochs, loss.mean(axis=0), color="#d55e00", linestyle="--", linewidth=1)
        other.set_ylabel("training loss (dashed)", color="#d55e00", fontsize=8)
        axis.set(title=f"{dataset}, {network}", xlabel="epoch", ylabel="test accuracy [%]")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)
