"""The picture of the pooling benchmark."""

from ..common.command import pyplot
from .contenders import OWN_COUNT, PARTITIONS, TRAINED

LOOKS = {  # marker, colour; shapes alone tell them apart
    "vigmm": ("o", "#d00000"),
    "vigmm, soft": (".", "#700000"),
    "laplacian": ("P", "#f4a0a0"),
    "random": ("x", "#808080"),
    "metis": ("^", "#2ca02c"),
    "spectral": ("s", "#1f77b4"),
    "graclus": ("D", "#9467bd"),
    "ndp": ("v", "#8c564b"),
    "kmis": ("<", "#e377c2"),
    "mincut": ("*", "#000000"),
    "dmon": ("h", "#bcbd22"),
    "diffpool": ("p", "#17becf"),
    "justbalance": ("d", "#1b7f6f"),
    "topk": (">", "#ff7f0e"),
}
EXACT = 0.05  # clusters used / asked for, off 1 by more than this: hollow


def plot(values, path):
    """Cut by data set and method, time and memory over the size of the graph: what has been measured."""
    cuts = {tuple(key.split("/")[1:]): value for key, value in values.items() if key.startswith("cut/")}
    growth = {}
    for key, point in values.items():
        if key.startswith("growth/") and "failed" not in point:
            growth.setdefault(tuple(key.split("/")[1:3]), []).append(point)
    panels = [("cut", cuts)] if cuts else []
    panels += [(quantity, growth) for quantity in ("time", "memory")] if growth else []
    if not panels:
        return
    plt = pyplot()
    widths = [6 if panel == "cut" else 3 for panel, _ in panels]
    figure, axes = plt.subplots(
        1, len(panels), figsize=(1.45 * sum(widths), 5), width_ratios=widths, layout="constrained", squeeze=False
    )
    for letter, (panel, data), axis in zip("abc", panels, axes[0], strict=False):
        if panel == "cut":
            _plot_cut(axis, data, f"({letter}) normalised cut of clusters")
        else:
            _plot_growth(axis, data, panel, f"({letter}) {panel} of one coarsening")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _plot_cut(axis, cuts, title):
    from matplotlib.lines import Line2D

    datasets = list(dict.fromkeys(dataset for dataset, _ in cuts))
    names = [name for name in PARTITIONS if any(name == other for _, other in cuts)]
    for (dataset, name), measured in cuts.items():
        value = measured.get("all", measured["sample"])
        x = datasets.index(dataset) + 0.84 * ((names.index(name) + 0.5) / len(names) - 0.5)
        hollow = abs(value["used"] - 1) > EXACT
        axis.plot(x, value["cut"], **_marker(name, hollow), linestyle="")
    for i in range(1, len(datasets)):
        axis.axvline(i - 0.5, color="lightgrey", linewidth=1, zorder=0)
    axis.set_xticks(range(len(datasets)), datasets, fontsize=8)
    axis.tick_params(axis="x", length=0)
    axis.grid(axis="y", color="#eeeeee")
    axis.set(xlim=(-0.5, len(datasets) - 0.5), ylim=(0, 1.02), title=title)
    axis.set_ylabel("cut / volume, mean over clusters and graphs\n(lower is better)")
    signs = {**dict.fromkeys(OWN_COUNT, " *"), **dict.fromkeys(TRAINED, " †")}
    handles = [Line2D([], [], label=name + signs.get(name, ""), linestyle="", **_marker(name, False)) for name in names]
    graphs = max((value["sample"]["graphs"] for value in cuts.values()), default=0)
    own, fitted = "* own number of clusters", f"† fitted to each of {graphs} graphs"
    title = f"hollow: more or fewer clusters than asked for (±5 %)   {own}   {fitted}"
    _legend(axis, handles, min(6, len(names)), title)


def _plot_growth(axis, growth, quantity, title):
    from matplotlib.lines import Line2D

    kinds, names = (list(dict.fromkeys(key[i] for key in growth)) for i in (0, 1))
    sizes, anchor = set(), 0
    for (kind, name), points in growth.items():
        points = sorted((p for p in points if p[quantity]), key=lambda p: p["nodes"])
        style = "-" if kind == kinds[0] else ":"
        axis.loglog([p["nodes"] for p in points], [p[quantity] for p in points], style, **_marker(name, kind != kinds[0]))
        sizes.update(p["nodes"] for p in points)
        if name == "vigmm" and points:
            anchor = max(anchor, points[-1][quantity] / points[-1]["nodes"])
    ends = [min(sizes), max(sizes)]
    axis.loglog(ends, [2 * anchor * n for n in ends], "k--", linewidth=1)
    axis.set(xlabel="nodes", ylabel={"time": "time [ms]", "memory": "peak memory [MB]"}[quantity], title=title)
    axis.grid(color="#eeeeee")
    handles = [Line2D([], [], label=name, linestyle="-", **_marker(name, False)) for name in names]
    handles += [Line2D([], [], color="black", linestyle="--", linewidth=1, label="proportional")]
    _legend(
        axis,
        handles,
        3,
        "  ".join(f"{kind}: {line}" for kind, line in zip(kinds, ("filled, solid", "hollow, dotted"), strict=False)),
    )


def _marker(name, hollow):
    shape, color = LOOKS[name]
    return {
        "marker": shape,
        "color": color,
        "markersize": 9 if name in ("vigmm", "mincut") else 6,
        "markerfacecolor": "white" if hollow else color,
        "markeredgewidth": 1.5 if hollow or shape == "x" else 0.8,
        "linewidth": 1.2,
    }


def _legend(axis, handles, columns, title):
    axis.legend(
        handles=handles,
        fontsize=8,
        ncols=columns,
        title=title,
        title_fontsize=8,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.13),
        frameon=False,
    )
