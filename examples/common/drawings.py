"""The picture of quickstart.py: letters, what the components see, learning curves, and a graph in parts."""

import torch
from torch_geometric.utils import coalesce, to_undirected

from torch_gic import cluster
from torch_gic.datasets import LETTERS
from torch_gic.encoding import component_posterior

BOX = (-0.9, 1.9, -0.9, 2.9)  # what is shown of the plane: left, right, bottom, top
COLORS = ["#e41a1c", "#377eb8", "#ff9f1c", "#4daf4a", "#984ea3", "#00b3b3", "#a65628", "#f781bf"]
NUM_POINTS, NUM_PARTS, IMBALANCE = 500, 10, 1.1


@torch.no_grad()
def components(model, points):
    """How much each component of the first GICConv is responsible for a point of the plane: ``[M, C]``."""
    conv = model.convs[0]
    v = conv.filter.prepare(model.encoder(points))[1]
    mixture, nodes = conv.filter.mixture, torch.arange(len(points))
    weight = conv.log_scale.exp()[0] / 3  # of a field member: a point and two neighbours share the weight of 1
    log_pi = mixture.pi.log()
    return component_posterior(v, mixture.mu[0], mixture.sigma[0], log_pi[0], nodes, weight.expand(len(points)))


def mixed_colors(responsibility):
    """The colours of the components, mixed as they share a point."""
    from matplotlib.colors import to_rgb

    colors = torch.tensor([to_rgb(color) for color in COLORS[: responsibility.size(1)]])
    return (responsibility.float() @ colors).clamp(0, 1)


def draw_letter(ax, points, edge_index, color="black", colors="white", size=20, width=1.5):
    for source, target in edge_index.t().tolist():
        ax.plot(*points[[source, target]].t(), color=color, lw=width, solid_capstyle="round", zorder=2)
    if size:
        ax.scatter(*points.t(), color=colors, s=size, zorder=3, edgecolor="black", linewidth=0.5)


def draw_letters(figure, model, drawings):
    """Each letter as it is meant, in grey, and a drawing of it, whose points have the colours of their components."""
    axes = figure.subplots(2, 7)
    for ax, (points, strokes), drawing in zip(axes.flat, LETTERS.values(), drawings, strict=True):
        clean = torch.tensor(points, dtype=torch.float), torch.tensor(strokes).t()
        draw_letter(ax, *clean, color="0.88", size=0, width=9)
        draw_letter(ax, drawing.x, drawing.edge_index, colors=mixed_colors(components(model, drawing.x)).numpy(), size=70)
        ax.set(xlim=BOX[:2], ylim=(BOX[2], BOX[3] + 0.5), xticks=[], yticks=[], aspect="equal")
        for side in ax.spines.values():
            side.set_visible(False)
    figure.suptitle("letters (grey), and drawings of them")


def draw_components(ax, model):
    """The plane in the colours of the components, and a letter on it."""
    columns, rows = 140, 190
    x, y = torch.meshgrid(torch.linspace(*BOX[:2], columns), torch.linspace(*BOX[2:], rows), indexing="xy")
    responsibility = components(model, torch.stack([x.flatten(), y.flatten()], dim=1))
    colors = mixed_colors(responsibility).view(rows, columns, 3)
    ax.imshow(0.35 + 0.65 * colors.numpy(), extent=BOX, origin="lower", interpolation="bilinear")
    points, strokes = LETTERS["K"]
    draw_letter(ax, torch.tensor(points, dtype=torch.float), torch.tensor(strokes).t(), size=60, width=2.5)
    ax.set(title="what the components see:\neach a place of the plane", xticks=[], yticks=[])


def draw_curves(ax, curves):
    order = sorted(curves, key=lambda name: -_mean(curves[name])[-1])
    for name, color in zip(curves, ["0.75", "0.6", "tab:olive", "tab:purple", "tab:blue", "salmon", "#d00000"], strict=True):
        mean = _mean(curves[name])
        label = f"{mean[-1]:.1f}  {name}"
        ax.plot(range(1, len(mean) + 1), mean, color=color, lw=3 if name == "GICConv" else 1.8, label=label)
    handles = {text.split("  ")[1]: (line, text) for line, text in zip(*ax.get_legend_handles_labels(), strict=True)}
    ax.legend(*zip(*(handles[name] for name in order), strict=True), loc="lower right", title="last epoch")
    ax.set(xlabel="epoch", ylabel="drawings read right [%]", title="drawings not seen before")
    ax.xaxis.get_major_locator().set_params(integer=True)


def _mean(runs):
    return (100 * torch.tensor(runs)).mean(dim=0).tolist()


def mesh():
    """Points of the plane, joined with those around them."""
    from scipy.spatial import Delaunay

    points = torch.rand(NUM_POINTS, 2, generator=torch.Generator().manual_seed(0))
    triangles = torch.from_numpy(Delaunay(points.numpy()).simplices).long()
    edges = torch.cat([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]).t()
    length = (points[edges[0]] - points[edges[1]]).norm(dim=1)
    return points, coalesce(to_undirected(edges[:, length < 0.15], num_nodes=NUM_POINTS))


def metis(edge_index):
    """The parts of METIS, or None without pymetis."""
    try:
        import pymetis
    except ImportError:
        return None
    neighbors = [edge_index[1][edge_index[0] == node].tolist() for node in range(NUM_POINTS)]
    options = pymetis.Options(ufactor=round(1000 * (IMBALANCE - 1)))
    return torch.tensor(pymetis.part_graph(NUM_PARTS, neighbors, options=options, recursive=False)[1])


def draw_parts(figure):
    from matplotlib.collections import LineCollection

    points, edge_index = mesh()
    largest = int(IMBALANCE * NUM_POINTS / NUM_PARTS)
    parts = {"torch_gic.cluster": cluster(edge_index, NUM_PARTS, max_size=largest, num_nodes=NUM_POINTS)}
    parts["METIS"] = metis(edge_index)
    parts = {name: part for name, part in parts.items() if part is not None}
    edges = edge_index[:, edge_index[0] < edge_index[1]]
    for ax, (name, part) in zip(figure.subplots(1, len(parts), squeeze=False)[0], parts.items(), strict=True):
        cut = part[edges[0]] != part[edges[1]]
        for chosen, color, width in ((~cut, "0.75", 0.8), (cut, "black", 1.4)):
            ax.add_collection(LineCollection(points[edges[:, chosen].t()].numpy(), colors=color, linewidths=width))
        ax.scatter(*points.t(), c=part, cmap="tab10", s=14, zorder=3)
        ax.set(title=f"{name}: {int(cut.sum())} edges cut", xticks=[], yticks=[], aspect="equal")
        print(f"{name}: {int(cut.sum())} of {len(cut)} edges between {NUM_PARTS} parts of at most {largest} nodes")
    figure.suptitle("a graph in equal parts: few edges between them (black)")


def draw(model, drawings, curves, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(15, 8.4), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=(1.6, 1))
    letters, seen, right = upper.subfigures(1, 3, width_ratios=(2.1, 0.9, 1.6))
    draw_letters(letters, model, drawings)
    draw_components(seen.subplots(), model)
    draw_curves(right.subplots(), curves)
    draw_parts(lower.subfigures(1, 3, width_ratios=(1, 2, 1))[1])
    figure.savefig(path, dpi=80)
    plt.close(figure)
