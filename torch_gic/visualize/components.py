"""The components of a layer, over two features or over positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.typing import SparseTensor
from torch_geometric.utils import scatter

from torch_gic._checks import as_edge_list
from torch_gic.encoding import component_posterior
from torch_gic.nn.conv.gic_conv import GICConv
from torch_gic.visualize.drawing import DARK, LIGHT, check_pos, distinct_colors, draw_edges, needed, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BACKGROUND_POINTS = 120  # per side


@torch.no_grad()
def plot_components(
    conv: GICConv,
    x: Tensor,
    edge_index: Tensor | SparseTensor,
    edge_weight: Tensor | None = None,
    *,
    pos: Tensor | None = None,
    scale: int = 1,
    ax: Any = None,
) -> Axes:
    r"""Draws which component of a layer is responsible for which node, over two features or over positions.

    - **Colours.** Each component has a colour. The colour of a node mixes them by the responsibilities :math:`Q_{jc}`,
      averaged over the fields that contain the node. A greyish node is shared by several components.
    - **Crosses and ellipses.** A cross marks the mean of the nodes, weighted by the responsibilities of a component. The
      ellipse around it is one standard deviation.
    - **Background.** If the layer has exactly two features, and these are drawn, the background is coloured in the same way.

    The layer is evaluated in evaluation mode.

    Args:
        conv (GICConv): The layer.
        x (torch.Tensor): Its input.
        edge_index (torch.Tensor or SparseTensor): The edges.
        edge_weight (torch.Tensor, optional): Their weights. (default: ones)
        pos (torch.Tensor, optional): Where to draw each node, as two numbers per node: positions, or any two features, as in
            :obj:`x[:, [3, 5]]`. (default: the first two features)
        scale (int, optional): The scale :math:`k`, from 1 on. (default: :obj:`1`)
        ax (matplotlib.axes.Axes, optional): Where to draw. (default: a new figure)

    Example:
        >>> import torch
        >>> from torch_gic import GICConv
        >>> from torch_gic.visualize import plot_components
        >>> path = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
        >>> plot_components(GICConv(2, 16, num_components=3), torch.randn(4, 2), path).get_title()
        'Scale 1 of 1: 3 components'
    """
    if not isinstance(conv, GICConv):
        raise TypeError(f"Expected 'conv' to be a GICConv (got {type(conv).__name__})")
    if conv.edge_dim is not None:
        raise ValueError("Expected a layer without 'edge_dim', whose mixture sees nodes (got one that sees edges)")
    if not 1 <= scale <= conv.num_scales:
        raise ValueError(f"Expected 'scale' to be in [1, {conv.num_scales}] (got {scale})")
    ground = pos is None and x.size(1) == 2
    if pos is None and x.size(1) < 2:
        raise ValueError(f"Expected 'pos', since 'x' has no two features to draw nodes at (got {x.size(1)})")
    pos = check_pos(x[:, :2] if pos is None else pos, x.size(0))
    training = conv.training
    conv.eval()
    try:
        fields = conv.fields(x, edge_index, edge_weight)
        member, weight = fields.index[0], fields.weight[:, scale - 1]
        present = weight > 0
        share = _responsibility(conv, x, member[present], weight[present], scale)
        share = scatter(share, member[present], dim_size=x.size(0), reduce="mean").cpu()
        ax = new_axes(ax)
        if ground:
            _draw_ground(ax, conv, pos, weight[present].mean(), scale)
    finally:
        conv.train(training)
    draw_edges(ax, pos, as_edge_list(edge_index, None, x.size(0))[0].cpu(), colors=LIGHT, linewidths=0.6)
    colors = distinct_colors(conv.num_components)
    ax.scatter(*pos.t(), c=_mixed(share, colors), s=30, edgecolors=DARK, linewidths=0.5, zorder=3)
    for component, color in enumerate(colors):
        _draw_component(ax, pos, share[:, component], color, component)
    ax.legend(title="component", loc="center left", bbox_to_anchor=(1, 0.5))
    ax.set_title(f"Scale {scale} of {conv.num_scales}: {conv.num_components} components")
    return ax


def _responsibility(conv: GICConv, x: Tensor, member: Tensor, weight: Tensor, scale: int) -> Tensor:
    """That of each component for each field entry of one scale: ``[E, C]``."""
    mixture = conv.filter.mixture
    v = conv.filter.prepare(x)[1]
    a = weight.to(v.dtype) * conv.log_scale[scale - 1].exp()
    log_pi = mixture.alpha[scale - 1].log_softmax(dim=-1)
    return component_posterior(v, mixture.mu[scale - 1], mixture.sigma[scale - 1], log_pi, member, a)


def _draw_ground(ax: Axes, conv: GICConv, pos: Tensor, weight: Tensor, scale: int) -> None:
    """Colours the background by the responsibilities of the components there, for a member of the mean weight."""
    lower, upper = pos.amin(dim=0), pos.amax(dim=0)
    (left, bottom), (right, top) = (lower - 0.1 * (upper - lower)).tolist(), (upper + 0.1 * (upper - lower)).tolist()
    rows, columns = torch.linspace(bottom, top, BACKGROUND_POINTS), torch.linspace(left, right, BACKGROUND_POINTS)
    points = torch.cartesian_prod(rows, columns).flip(1).to(conv.log_scale)
    share = _responsibility(conv, points, torch.arange(len(points), device=points.device), weight.expand(len(points)), scale)
    image = _mixed(share.cpu(), distinct_colors(conv.num_components)).reshape(BACKGROUND_POINTS, BACKGROUND_POINTS, 3)
    ax.imshow(image, extent=(left, right, bottom, top), origin="lower", alpha=0.35, aspect="auto", zorder=0)


def _mixed(share: Tensor, colors: list[tuple[float, float, float]]) -> Any:
    return (share.float() @ torch.tensor(colors, dtype=torch.float)).clamp(0, 1).numpy()


def _draw_component(ax: Axes, pos: Tensor, share: Tensor, color: tuple[float, float, float], number: int) -> None:
    """Its mean over the nodes, and an ellipse of one standard deviation."""
    share = share.float() / share.sum().clamp(min=1e-12)
    mean = share @ pos
    covariance = (share.unsqueeze(1) * (pos - mean)).t() @ (pos - mean)
    variance, axis = torch.linalg.eigh(covariance)
    (width, height), angle = (2 * variance.clamp(min=0).sqrt()).tolist(), float(torch.atan2(axis[1, 0], axis[0, 0]).rad2deg())
    ellipse = needed("matplotlib.patches").Ellipse
    ax.add_patch(ellipse(mean.tolist(), width, height, angle=angle, fill=False, edgecolor=color, linewidth=2, zorder=4))
    ax.scatter(mean[:1], mean[1:], marker="X", s=140, color=[color], edgecolors="black", zorder=5, label=str(number))
