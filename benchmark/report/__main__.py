"""Writes RESULTS.md and its pictures from the files of runs, and nothing else."""

from pathlib import Path

from ..common.command import make_parser, parse, pyplot
from ..graphs.networks import PEERS, VARIANTS
from .graphs import SHOWN, comparisons, graph_results, write_graphs, write_molecules, write_parts
from .nodes import write_nodes, write_units, write_worth
from .paper import write_paper

HEAD = """# Results

Written by `python -m benchmark.report` from the runs in [`FOLDER`](FOLDER); do not edit. What was to be run and tested was
committed before: [the plan](PLAN.md). Accuracy in percent, mean and standard deviation."""


def make_report(folder):
    """The text of RESULTS.md, from the runs in a folder alone."""
    parts = [HEAD.replace("FOLDER", folder.name)]
    for write in (write_graphs, write_parts, write_units, write_worth, write_molecules, write_nodes):
        parts += write(folder)
    if graph_results(folder):
        parts += ["## Pictures", *(f"![{caption}]({folder.name}/{name})" for name, (caption, _) in PICTURES.items())]
    return "\n\n".join([*parts, *write_paper(folder)]) + "\n"


def draw_intervals(collected, path):
    """What GIC gains over each network: one panel for a network, one line for a set, the interval of 95 %."""
    tests = comparisons(collected, PEERS) | comparisons(collected, VARIANTS)
    panels = [name for name in SHOWN if any(network == name and found for (_, network), found in tests.items())]
    if not panels:
        return
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


def draw_curves(collected, path):
    """The mean score on validation graphs by epoch: a panel for each set."""
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
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.legend(fontsize=7)
    figure.savefig(path, dpi=90)
    plt.close(figure)


PICTURES = {
    "intervals.png": ("What GIC gains over each network", draw_intervals),
    "curves.png": ("Learning curves", draw_curves),
}


def main():
    parser = make_parser("report", __doc__)
    parser.add_argument("--output", type=Path, help="folder of the runs (default: benchmark/results)")
    parser.add_argument("--quick", action="store_true", help="of the runs of results/quick")
    folder = parse(parser, {}).output
    path = folder.parent / "RESULTS.md"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(make_report(folder))
    if collected := graph_results(folder):
        for name, (_, draw) in PICTURES.items():
            draw(collected, folder / name)
    print(f"Report: {path}")


if __name__ == "__main__":
    main()
