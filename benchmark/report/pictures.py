"""The pictures of RESULTS.md: intervals of the differences between networks, and learning curves."""

from ..common.picture import pyplot
from ..graphs.molecules import MOLECULES
from ..graphs.networks import PEERS, VARIANTS
from .collect import graph_results
from .peers import comparisons

BASES = ("GIC, C = 1", "GIN", "PNA", "GraphSAGE", "GATv2", "GMMConv", "GCN")


def collected_of(folder):
    return {name: cells for name, cells in graph_results(folder).items() if name not in MOLECULES}


def draw_intervals(folder, path):
    """What GIC gains over each network: one panel for a network, one line for a set, the interval of 95 %."""
    collected = collected_of(folder)
    tests = comparisons(collected, PEERS) | comparisons(collected, VARIANTS)
    panels = [name for name in BASES if any(network == name and found for (_, network), found in tests.items())]
    if not panels:
        return False
    plt = pyplot()
    size = 1 + 2.2 * len(panels), 1.2 + 0.3 * len(collected)
    figure, axes = plt.subplots(1, len(panels), figsize=size, sharey=True, squeeze=False, layout="constrained")
    names = list(collected)
    for axis, network in zip(axes[0], panels, strict=True):
        axis.axvline(0, color="black", linewidth=1)
        for line, dataset in enumerate(names):
            found = tests.get((dataset, network))
            if found:
                color = "tab:blue" if found.low > 0 else "tab:red" if found.high < 0 else "grey"
                axis.plot([found.low, found.high], [line, line], color=color, linewidth=2)
                axis.plot(found.difference, line, "o", color=color)
        axis.set(title=f"GIC less {network}", xlabel="points of accuracy")
        axis.set_yticks(range(len(names)), names)
        axis.grid(axis="y", color="#eeeeee")
    axes[0, 0].invert_yaxis()
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return True


def draw_curves(folder, path):
    """The mean score on validation graphs by epoch: a panel for each set."""
    collected = collected_of(folder)
    if not collected:
        return False
    plt = pyplot()
    rows = -(-len(collected) // 4)
    figure, axes = plt.subplots(rows, 4, figsize=(14, 3 * rows), squeeze=False, layout="constrained")
    colors = dict(zip([*VARIANTS, *PEERS], plt.get_cmap("tab20").colors, strict=False))
    for axis in axes.flat[len(collected) :]:
        axis.axis("off")
    for axis, (dataset, cells) in zip(axes.flat, collected.items(), strict=False):
        for network, (folds, *_) in cells.items():
            curves = [run["curves"]["score"] for run in folds.values()]
            mean = [100 * sum(values) / len(values) for values in zip(*curves, strict=True)]
            axis.plot(range(1, len(mean) + 1), mean, color=colors.get(network, "grey"), label=network)
        axis.set(title=dataset, xlabel="epoch", ylabel="validation [%]")
        axis.legend(fontsize=7)
    figure.savefig(path, dpi=90)
    plt.close(figure)
    return True


PICTURES = {
    "intervals.png": ("What GIC gains over each network", draw_intervals),
    "curves.png": ("Learning curves", draw_curves),
}
