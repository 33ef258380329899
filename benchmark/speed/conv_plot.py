"""The picture of the convolution benchmark."""

from ..common.picture import pyplot
from .growth import STEP
from .layers import GIN, OURS


def plot(values, path):
    """Time of a step over that of GIN for each layer, and growth with the fields: what has been measured."""
    layers = {tuple(key.split("/")[1:]): times for key, times in values.items() if key.startswith("layers/")}
    growth = sorted((p for key, p in values.items() if key.startswith("growth/")), key=lambda p: p["entries"])
    parts = [(_plot_layers, layers), (_plot_growth, growth)]
    parts = [(draw, data) for draw, data in parts if data]
    if not parts:
        return
    plt = pyplot()
    shares = [3 if draw is _plot_layers else 2 for draw, _ in parts]
    figure, axes = plt.subplots(
        1, len(parts), figsize=(2.2 * sum(shares), 4.2), width_ratios=shares, layout="constrained", squeeze=False
    )
    for (draw, data), axis in zip(parts, axes[0], strict=True):
        draw(axis, data)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _plot_layers(axis, layers):
    threads = max(label.split(" x ")[0] for _, label in layers)
    shown = {key: times for key, times in layers.items() if key[1].startswith(f"{threads} x ")}
    names = [name for name in next(iter(shown.values())) if name != GIN]
    for name, marker in zip(names, "sodD^v<>PX", strict=False):
        ratios = [times[name] / times[GIN] for times in shown.values()]
        axis.plot(ratios, marker, label=name, markersize=10 if name == OURS else 6)
    axis.axhline(1, color="black", linewidth=1, label=GIN)
    axis.set(yscale="log", ylabel="time of a training step, times GIN", title=f"one layer, {threads} threads\n")
    axis.set_xticks(range(len(shown)), [label.split(" x ")[1].replace(" to ", "\n→") for _, label in shown], fontsize=8)
    datasets = [dataset for dataset, _ in shown]
    for dataset in dict.fromkeys(datasets):
        first, count = datasets.index(dataset), datasets.count(dataset)
        axis.text(first + (count - 1) / 2, 1.01, dataset, transform=axis.get_xaxis_transform(), ha="center", fontsize=8)
        if first > 0:
            axis.axvline(first - 0.5, color="lightgrey", linewidth=1, zorder=0)
    axis.set_xlabel("channels")
    axis.legend(fontsize=8, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.2))


def _plot_growth(axis, growth):
    entries = [point["entries"] for point in growth]
    for name, marker in zip([name for name in growth[0] if name != "entries"], "os", strict=False):
        axis.loglog(entries, [point[name] for point in growth], marker=marker, label=name)
    last = growth[-1][STEP]
    axis.loglog(entries, [last * e / entries[-1] for e in entries], "k--", linewidth=1, label="proportional")
    axis.set(xlabel="field entries", ylabel="time [ms]", title="growth\n")
    axis.legend(fontsize=8)
