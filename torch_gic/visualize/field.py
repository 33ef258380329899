"""A receptive field, drawn on its graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.utils import subgraph

from torch_gic.fields import Fields
from torch_gic.fields.fields import EDGES_AS_MEMBERS
from torch_gic.visualize.drawing import DARK, GREY, bare, check_pos, draw_edges, fading, layout, new_axes, undirected

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_DRAWN_NODES = 300  # of a larger graph, only the field is drawn


def plot_field(
    fields: Fields | Mapping[str, Any], node: int, scale: int = 1, pos: Tensor | None = None, ax: Any = None
) -> Axes:
    r"""Draws the receptive field of one node. Members with a larger weight :math:`a_{ijk}` are darker.

    The node itself has a red ring. Nodes outside the field are white. In a graph with more than 300 nodes, only the members of
    the field, in any scale, are drawn.

    Args:
        fields (Fields): The fields, from :func:`~torch_gic.receptive_fields` or :obj:`conv.fields`, or :obj:`data.fields`.
        node (int): The node :math:`i`.
        scale (int, optional): The scale :math:`k`, from 1 on. (default: :obj:`1`)
        pos (torch.Tensor, optional): Where to draw each node, ``[num_nodes, 2]``. (default: a spring layout, by networkx)
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: a new figure)

    Example:
        >>> import torch
        >>> from torch_gic import receptive_fields
        >>> from torch_gic.visualize import plot_field
        >>> path = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
        >>> plot_field(receptive_fields(path, num_scales=2), node=0, scale=2).get_title()
        'Node 0, scale 2 of 2: 2 members'
    """
    fields = Fields.from_dict(fields) if isinstance(fields, Mapping) else fields
    if not isinstance(fields, Fields) or fields.edge_index is None:
        raise TypeError(f"Expected 'fields' to be Fields of 'receptive_fields' or data.fields (got {type(fields).__name__})")
    if fields.settings == EDGES_AS_MEMBERS:
        raise ValueError("Expected 'fields' whose members are nodes (got edges as members); draw those of receptive_fields")
    num_nodes, edge_index = fields.num_nodes, fields.edge_index.cpu()
    if fields.num_sources != num_nodes:
        raise ValueError(f"Expected 'fields' of one kind of nodes (got {fields.num_sources} sources and {num_nodes} nodes)")
    if not 0 <= node < num_nodes:
        raise ValueError(f"Expected 'node' to be in [0, {num_nodes - 1}] (got {node})")
    if not 1 <= scale <= fields.num_scales:
        raise ValueError(f"Expected 'scale' to be in [1, {fields.num_scales}] (got {scale})")
    entries = slice(int(fields.rowptr[node]), int(fields.rowptr[node + 1]))
    weight = torch.zeros(num_nodes).index_add(
        0, fields.index[0, entries].cpu(), fields.weight[entries, scale - 1].cpu().float()
    )
    edge_index, shown = undirected(edge_index), torch.arange(num_nodes)
    if num_nodes > MAX_DRAWN_NODES:
        shown = torch.cat([fields.index[0, entries].cpu(), torch.tensor([node])]).unique()
        edge_index = subgraph(shown, edge_index, relabel_nodes=True, num_nodes=num_nodes)[0]
        pos = None if pos is None else check_pos(pos, num_nodes)[shown]
    weight, own = weight[shown], (shown == node).nonzero()[0]
    pos = layout(edge_index, shown.numel(), pos)
    ax = new_axes(ax)
    draw_edges(ax, pos, edge_index, colors=GREY, linewidths=1)
    points = ax.scatter(*pos.t(), c=weight, cmap=fading("Blues"), vmin=0, s=90, edgecolors=DARK, linewidths=0.8)
    ax.scatter(*pos[own].t(), s=220, facecolors="none", edgecolors="tab:red", linewidths=2.5)
    ax.figure.colorbar(points, ax=ax, label="weight", shrink=0.7)
    ax.set_title(f"Node {node}, scale {scale} of {fields.num_scales}: {int((weight > 0).sum())} members")
    return bare(ax)
