"""The Select step of coarsening: which cluster each vertex goes to."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch_geometric.nn import Linear
from torch_geometric.nn.pool.select import Select, SelectOutput
from torch_geometric.utils import cumsum

from torch_gic._checks import check_at_least
from torch_gic.ops import cut_kernel, laplacian_kernel, seed_clusters, undirected_adjacency, vertex_volume, vigmm

KERNELS = ("cut", "laplacian")
# In the cut kernel, distances to clusters differ by about 1 / cluster size. On six data sets (MUTAG to REDDIT-BINARY)
# a smaller factor than this lost clusters, a larger one left EM at its start.
SHARPNESS = 32


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
        in_channels: int,
        ratio: float | int = 0.25,
        kernel: str = "cut",
        beta: float | None = None,
        num_iterations: int = 10,
    ) -> None:
        super().__init__()
        if kernel not in KERNELS:
            raise ValueError(f"Expected 'kernel' to be one of {KERNELS} (got {kernel!r})")
        if beta is not None and not (math.isfinite(beta) and beta > 0):
            raise ValueError(f"Expected 'beta' to be positive and finite (got {beta})")
        if not isinstance(ratio, int | float):
            raise TypeError(f"Expected 'ratio' to be a float or an int (got {type(ratio).__name__})")
        if isinstance(ratio, int):
            check_at_least(ratio, "ratio", 1)
        elif not 0 < ratio <= 1:
            raise ValueError(f"Expected 'ratio' to be in (0, 1], or a number of clusters as an int (got {ratio})")
        check_at_least(num_iterations, "num_iterations", 1)
        if in_channels != -1:
            check_at_least(in_channels, "in_channels", 1)
        self.ratio = ratio
        self.kernel = kernel
        self.beta = beta
        self.num_iterations = num_iterations
        self.lin = Linear(in_channels, 1, weight_initializer="uniform")

    def reset_parameters(self) -> None:
        self.lin.reset_parameters()

    def influence(self, x: Tensor) -> Tensor:
        r"""The learnt influence :math:`h(\mathbf{x}_i) = \frac{1}{2} + \mathrm{sigmoid}(\mathbf{u}^\top \mathbf{x}_i + b)`,
        between 1/2 and 3/2: no vertex vanishes and none rules its graph."""
        return 0.5 + self.lin(x).squeeze(-1).sigmoid()

    def num_clusters(self, num_vertices: Tensor) -> Tensor:
        r"""The number of clusters of each graph, :math:`\lceil \mathrm{ratio} \cdot m \rceil`."""
        if isinstance(self.ratio, int):
            return num_vertices.clamp(max=self.ratio)
        return (self.ratio * num_vertices.double()).ceil().long()

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor, batch: Tensor) -> SelectOutput:
        num_nodes, num_graphs = x.size(0), int(batch.max()) + 1 if batch.numel() > 0 else 0
        size = torch.bincount(batch, minlength=num_graphs)
        num_clusters = self.num_clusters(size)
        offset = cumsum(num_clusters)
        if num_nodes == 0:
            return SelectOutput(batch, 0, batch, 0, x.new_empty(0))

        adjacency = undirected_adjacency(edge_index, edge_weight, num_nodes)
        vertex_weight = self.influence(x).double()
        if self.kernel == "cut":
            vertex_weight = vertex_weight * vertex_volume(adjacency, batch, num_graphs)
            kernel = cut_kernel(adjacency, vertex_weight, batch, num_graphs)
            beta = SHARPNESS * size / num_clusters.clamp(min=1)
        else:
            kernel = laplacian_kernel(adjacency)
            beta = torch.ones_like(size)
        beta = beta.double() if self.beta is None else torch.full_like(beta, self.beta, dtype=torch.float64)

        # Light vertices are seeds first: a hub as a seed would take all its neighbours with it.
        start, seed = seed_clusters(adjacency.indices(), -vertex_weight.detach(), batch, num_clusters)
        p = vigmm(kernel, vertex_weight, batch, num_clusters, start, beta, self.num_iterations)
        cluster = self._keep_all(p.detach().argmax(dim=1) + offset[batch], seed)
        own = p.gather(1, (cluster - offset[batch]).unsqueeze(1)).squeeze(1).to(x.dtype)
        node_index = torch.arange(num_nodes, device=x.device)
        return SelectOutput(node_index, num_nodes, cluster, int(offset[-1]), 1 + (own - own.detach()))

    @staticmethod
    def _keep_all(cluster: Tensor, seed: Tensor) -> Tensor:
        """Gives each cluster that lost all its vertices the one it started from. That may empty the cluster which had
        this vertex, so it repeats; a vertex once returned stays, so it ends."""
        cluster = cluster.clone()
        while True:
            empty = torch.bincount(cluster, minlength=seed.numel()) == 0
            if not bool(empty.any()):
                return cluster
            cluster[seed[empty]] = empty.nonzero().squeeze(1)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.lin.in_channels}, ratio={self.ratio}, kernel={self.kernel!r})"
