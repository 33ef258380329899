"""The picture of the benchmark of pooling by accuracy."""

import statistics

from .picture import pyplot
from .pooling_networks import POOLERS
from .protocols import spread


def plot(collected, base, path):
    """Mean test accuracy and its standard error: one panel per data set, one row per pooling, one marker per
    network; a line at the pooling that all are compared with."""
    plt = pyplot()
    datasets, networks = (list(dict.fromkeys(part)) for part in zip(*collected, strict=True))
    present = {pooler for poolers in collected.values() for pooler in poolers}
    rows = [pooler for pooler in POOLERS if pooler in present]
    figure, axes = plt.subplots(
        1,
        len(datasets),
        figsize=(1.5 + 3.5 * len(datasets), 1.5 + 0.35 * len(rows)),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for dataset, axis in zip(datasets, axes[0], strict=True):
        for number, network in enumerate(networks):
            poolers = collected.get((dataset, network), {})
            shift = 0.3 * (number - (len(networks) - 1) / 2)
            style = {"fmt": "os"[number], "color": ("black", "dimgrey")[number], "mfc": ("black", "white")[number]}
            values = {name: [100 * r["test"] for r in results.values()] for name, results in poolers.items()}
            axis.errorbar(
                [statistics.mean(v) for v in values.values()],
                [rows.index(name) + shift for name in values],
                xerr=[(spread(v) or 0) / len(v) ** 0.5 for v in values.values()],
                capsize=2,
                label=network,
                **style,
            )
            if base in values:
                line = ("--", ":")[number]
                axis.axvline(statistics.mean(values[base]), color=style["color"], linestyle=line, linewidth=1, zorder=0)
        axis.set(title=dataset, xlabel="test accuracy [%], mean ± standard error")
        axis.set_yticks(range(len(rows)), rows)
        axis.grid(axis="y", color="lightgrey", linewidth=0.5)
    axes[0, 0].invert_yaxis()
    axes[0, -1].legend(title=f"lines: {base}", fontsize=8, title_fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(path, dpi=120)
    plt.close(figure)
