"""The Select step of coarsening: which cluster each vertex goes to."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import Linear
from torch_geometric.nn.pool.select import Select, SelectOutput

from torch_gic._checks import check_at_least
from torch_gic.coarsening import responsibility, vigmm_select
from torch_gic.coarsening.undirected_graph import UndirectedGraph
from torch_gic.coarsening.vigmm_select import GRADIENT_SHARPNESS, precisions, vertex_kernel, vertex_weights

KERNELS = ("cut", "laplacian")


class ZeroLinear(Linear):
    """Starts at zero: all vertices have the same influence, and the clusters are those of the normalised cut, until there is
    something to learn. Computes in float64: how float32 is rounded depends on the size of the batch, and ties with it."""

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, enabled=False):
            return F.linear(x.double(), self.weight.double(), self.bias.double())

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.in_channels > 0:  # else the first input tells, and it is reset then
            torch.nn.init.zeros_(self.weight)
            torch.nn.init.zeros_(self.bias)


class VIGMMSelect(Select):
    r"""Assigns the vertices of each graph to clusters by a vertex-induced Gaussian mixture: see
    :class:`~torch_gic.VIGMMPool`, whose arguments these are.

    Shapes:
        - **input:** attributes :math:`(|\mathcal{V}|, F)`, edges :math:`(2, |\mathcal{E}|)`, edge weights
          :math:`(|\mathcal{E}|)`, batch :math:`(|\mathcal{V}|)`
        - **output:** a :class:`SelectOutput` with one entry a vertex. Its weights are 1, with the gradient of the
          responsibility of the cluster for the vertex.
    """

    def __init__(
        self,
        in_channels: int | None,
        ratio: float | int = 0.25,
        kernel: str = "cut",
        soft: bool | None = None,
        beta: float | None = None,
        num_iterations: int = 20,
    ) -> None:
        super().__init__()
        if kernel not in KERNELS:
            raise ValueError(f"Expected 'kernel' to be one of {KERNELS} (got {kernel!r})")
        if kernel == "laplacian" and soft is False:
            raise ValueError(
                "Expected 'soft' to be True or None for kernel 'laplacian', which drives neighbours apart (got False)"
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
        self.kernel = kernel
        self.soft = kernel == "laplacian" if soft is None else soft
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
        between 1/2 and 3/2: no vertex vanishes and none rules its graph. Without channels to learn it from, it is 1."""
        if self.lin is None:
            return x.new_ones(x.size(0))
        return (0.5 + self.lin(x).squeeze(-1).sigmoid()).to(x.dtype)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor, batch: Tensor) -> SelectOutput:
        influence = self.influence(x)
        cluster, cluster_batch, graph = vigmm_select(
            edge_index, edge_weight, influence, batch, self.ratio, self.kernel, self.soft, self.beta, self.num_iterations
        )
        weight = torch.ones_like(influence)
        # An exported program is for inference, where only the value counts.
        if torch.is_grad_enabled() and influence.requires_grad and not torch.compiler.is_exporting():
            p = self.responsibility(influence, batch, cluster, cluster_batch, graph).to(weight.dtype)
            weight = weight + (p - p.detach())  # the value of 1, the gradient of the responsibility
        return SelectOutput(torch.arange(x.size(0), device=x.device), x.size(0), cluster, cluster_batch.size(0), weight)

    def responsibility(
        self, influence: Tensor, batch: Tensor, cluster: Tensor, cluster_batch: Tensor, graph: UndirectedGraph
    ) -> Tensor:
        """How sure the mixture is of the cluster of each vertex, differentiable in the influence."""
        size = torch.bincount(batch)
        num_clusters = torch.bincount(cluster_batch, minlength=size.numel())
        weight = vertex_weights(graph, influence.double(), batch, size.numel(), self.kernel)
        kernel = vertex_kernel(graph, weight, batch, size.numel(), self.kernel)
        beta = precisions(size, num_clusters, self.kernel, self.beta, GRADIENT_SHARPNESS)
        return responsibility(kernel, weight, beta, batch, cluster, cluster_batch.numel())

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.in_channels}, ratio={self.ratio}, kernel={self.kernel!r})"
