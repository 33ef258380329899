"""The Select step of coarsening: which cluster each node goes to."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import Linear
from torch_geometric.nn.pool.select import Select, SelectOutput
from torch_geometric.typing import SparseTensor

from torch_gic._checks import as_edge_list, check_at_least, check_batch, check_features
from torch_gic.coarsening import Coarsening, coarsen, responsibility
from torch_gic.coarsening.order import graph_order
from torch_gic.coarsening.soft import laplacian_affinity, soft_coarsen, soft_responsibility
from torch_gic.coarsening.soft.select import precisions

AFFINITIES = ("cut", "laplacian")
# In units of the mean cluster size. The gradient comes from responsibilities that are not quite 1: at this precision most are
# above 0.9, and at the 16 of soft EM no gradient is left.
GRADIENT_SHARPNESS = 4


class ZeroLinear(Linear):
    """A linear map that starts at zero: at first all nodes have the same influence, as in the normalised cut.

    It computes in float64. How float32 is rounded depends on the size of the batch, and so would ties.
    """

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, enabled=False):
            return F.linear(x.double(), self.weight.double(), self.bias.double())

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.in_channels > 0:  # else the first input tells, and it is reset then
            torch.nn.init.zeros_(self.weight)
            torch.nn.init.zeros_(self.bias)


class VIGMMSelect(Select):
    r"""Assigns the nodes of each graph to clusters by a Gaussian mixture over the nodes.

    The arguments are those of :class:`~torch_gic.VIGMMPool`.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F)`, edges :math:`(2, |\mathcal{E}|)`, edge weights
          :math:`(|\mathcal{E}|)` *(optional)*, batch :math:`(|\mathcal{V}|)` *(optional)*
        - **output:** a :class:`SelectOutput` with one entry per node. Its weights are 1, with the gradient of the
          responsibility of the cluster for the node.
    """

    def __init__(
        self,
        in_channels: int | None,
        ratio: float | int = 0.25,
        affinity: str = "cut",
        soft: bool | None = None,
        beta: float | None = None,
        num_iterations: int = 20,
    ) -> None:
        super().__init__()
        if affinity not in AFFINITIES:
            raise ValueError(f"Expected 'affinity' to be one of {AFFINITIES} (got {affinity!r})")
        if affinity == "laplacian" and soft is False:
            raise ValueError(
                "Expected 'soft' to be True or None for affinity 'laplacian', which drives neighbours apart (got False)"
            )
        if beta is not None and not (math.isfinite(beta) and beta > 0):
            raise ValueError(f"Expected 'beta' to be positive and finite (got {beta})")
        if not isinstance(ratio, int | float) or isinstance(ratio, bool):
            raise TypeError(f"Expected 'ratio' to be a float or an int (got {type(ratio).__name__})")
        if ratio <= 0 or not (isinstance(ratio, int) or ratio <= 1):
            raise ValueError(f"Expected 'ratio' to be in (0, 1], or a number of clusters as an int (got {ratio})")
        check_at_least(num_iterations, "num_iterations", 1)
        if in_channels is not None and in_channels != -1:
            check_at_least(in_channels, "in_channels", 1)
        self.ratio = ratio
        self.affinity = affinity
        self.soft = affinity == "laplacian" if soft is None else soft
        self.beta = beta
        self.num_iterations = num_iterations
        self.lin = None if in_channels is None else ZeroLinear(in_channels, 1)

    @property
    def in_channels(self) -> int | None:
        return None if self.lin is None else self.lin.in_channels

    def reset_parameters(self) -> None:
        if self.lin is not None:
            self.lin.reset_parameters()

    def influence(self, x: Tensor) -> Tensor:
        r"""The learnt influence :math:`h(\mathbf{x}_i) = \frac{1}{2} + \mathrm{sigmoid}(\mathbf{u}^\top \mathbf{x}_i + b)`,
        between 1/2 and 3/2, so no node vanishes or dominates. With :obj:`in_channels=None` it is 1."""
        if self.lin is None:
            return x.new_ones(x.size(0))
        return (0.5 + self.lin(x).squeeze(-1).sigmoid()).to(x.dtype)

    def forward(
        self, x: Tensor, edge_index: Tensor | SparseTensor, edge_weight: Tensor | None = None, batch: Tensor | None = None
    ) -> SelectOutput:
        check_features(
            x, -1 if self.lin is None else self.lin.in_channels, None if self.lin is None else self.lin.weight.dtype
        )
        edge_index, edge_weight, num_nodes = as_edge_list(edge_index, edge_weight, x.size(0))
        check_batch(batch, num_nodes, edge_index, look=False)
        batch = edge_index.new_zeros(num_nodes) if batch is None else batch.long()
        influence = self.influence(x)
        order = graph_order(batch, edge_index, influence)  # looks at the values of 'batch'
        h, batch = order.sort(influence).double(), order.sort(batch)
        graphs = order.sort_edges(edge_index), edge_weight, h.detach(), batch, order.num_graphs, self.ratio
        if self.soft:
            found = soft_coarsen(*graphs, self.num_iterations, self.affinity, self.beta)
        else:
            found = coarsen(*graphs, self.num_iterations)
        weight = torch.ones_like(influence)
        # An exported program is for inference, where only the value counts.
        if torch.is_grad_enabled() and influence.requires_grad and not torch.compiler.is_exporting():
            p = order.restore(self.responsibility(h, batch, found)).to(weight.dtype)
            weight = weight + (p - p.detach())  # the value of 1, the gradient of the responsibility
        node = torch.arange(num_nodes, device=x.device)
        return SelectOutput(node, num_nodes, order.restore(found.cluster), found.batch.size(0), weight)

    def responsibility(self, influence: Tensor, batch: Tensor, found: Coarsening) -> Tensor:
        """How sure the mixture is of the cluster of each node, differentiable in the influence."""
        sharpness = GRADIENT_SHARPNESS if self.affinity == "cut" else None
        beta, cluster = precisions(found, self.beta, sharpness), found.cluster
        if self.affinity == "laplacian":
            return soft_responsibility(laplacian_affinity(found.graph), influence, beta, batch, cluster, found.batch.size(0))
        node_weight = influence * (found.node_weight / influence.detach())
        return responsibility(found.graph, node_weight, found.ptr, found.offset, cluster, beta)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.in_channels}, ratio={self.ratio}, affinity={self.affinity!r})"
