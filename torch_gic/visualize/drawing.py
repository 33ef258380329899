"""What the pictures share: axes, layouts, edges, colours."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DARK, GREY, LIGHT = "0.2", "0.55", "0.8"


def needed(name: str) -> Any:
    """A package of the extra, imported when a picture is drawn and not before."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(f"torch_gic.visualize needs {package}: pip install matplotlib networkx scipy") from error


def new_axes(ax: Axes | None) -> Axes:
    """Those given, or those of a new figure."""
    if ax is None:
        ax = needed("matplotlib.pyplot").subplots(layout="constrained")[1]
    return ax


def bare(ax: Axes) -> Axes:
    """Without ticks and frame: places in a layout mean nothing."""
    ax.set_axis_off()
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.08)
    return ax


def check_pos(pos: Tensor, num_nodes: int) -> Tensor:
    if tuple(pos.shape) != (num_nodes, 2):
        raise ValueError(f"Expected 'pos' to have shape [{num_nodes}, 2] (got {list(pos.shape)})")
    return pos.detach().cpu().float()


def layout(edge_index: Tensor, num_nodes: int, pos: Tensor | None) -> Tensor:
    """A place for each node: the one given, or else neighbours near each other; the same in every picture of a graph."""
    if pos is not None:
        return check_pos(pos, num_nodes)
    networkx = needed("networkx")
    graph = networkx.Graph()
    graph.add_nodes_from(range(num_nodes))
    graph.add_edges_from(edge_index.t().tolist())
    places = networkx.spring_layout(graph, iterations=200, seed=0)
    pos = torch.tensor([places[node].tolist() for node in range(num_nodes)], dtype=torch.float).view(-1, 2)
    pos = pos - pos.mean(dim=0)
    return pos @ torch.linalg.eigh(pos.t() @ pos).eigenvectors.flip(1)  # the long way across the page


def undirected(edge_index: Tensor) -> Tensor:
    """Each pair of neighbours as one column, lower node first, without loops."""
    edge_index = edge_index.sort(dim=0).values
    return edge_index[:, edge_index[0] != edge_index[1]].unique(dim=1)


def draw_edges(ax: Axes, pos: Tensor, edge_index: Tensor, **style: Any) -> None:
    lines = needed("matplotlib.collections").LineCollection(pos[edge_index.t()].numpy(), zorder=1, **style)
    ax.add_collection(lines)


def write_numbers(ax: Axes, pos: Tensor, numbers: Iterable[int]) -> None:
    for (x, y), number in zip(pos.tolist(), numbers, strict=True):
        ax.text(x, y, str(number), fontsize=7, ha="center", va="center", zorder=4)


def distinct_colors(count: int) -> list[tuple[float, float, float]]:
    """One colour each; they repeat after twenty."""
    colormap = needed("matplotlib").colormaps["tab10" if count <= 10 else "tab20"]
    return [colormap(number % colormap.N)[:3] for number in range(count)]


def fading(name: str) -> Any:
    """A colour map that begins at white."""
    colors = needed("matplotlib.colors")
    shades = needed("matplotlib").colormaps[name](torch.linspace(0.15, 1, 64).numpy())
    return colors.LinearSegmentedColormap.from_list(f"white{name}", ["white", *shades])
