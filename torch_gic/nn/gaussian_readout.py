"""From the vertices of a graph to one vector."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.nn import BatchNorm, global_max_pool, global_mean_pool

from torch_gic.nn.gaussian_aggregation import GaussianAggregation


class GaussianReadout(torch.nn.Module):
    r"""Describes a graph by the maximum, the mean and the Gaussian encoding of the attributes of its vertices

    .. math::
        \max_i \mathbf{x}_i \, \Vert \, \frac{1}{m} \sum_i \mathbf{x}_i \, \Vert \,
        \mathrm{ReLU} \bigl( \mathrm{BatchNorm} ( \mathrm{GaussianAggregation}(\{ \mathbf{x}_i \}) ) \bigr).

    A maximum over clusters that cut few edges repeats what the convolution before it has seen. How attributes are
    distributed over the graph at each level is what it would lose.

    Args:
        channels (int): Size of each attribute vector.
        num_components (int, optional): The number of components of the mixture. (default: :obj:`7`)

    Shapes:
        - **input:** attributes :math:`(|\mathcal{V}|, F)`, batch vector :math:`(|\mathcal{V}|)`
        - **output:** :math:`(B, 3 F)`, a row a graph
    """

    def __init__(self, channels: int, num_components: int = 7) -> None:
        super().__init__()
        self.channels = channels
        self.encode = GaussianAggregation(channels, num_components=num_components)
        self.norm = BatchNorm(channels, allow_single_element=True)

    def reset_parameters(self) -> None:
        self.encode.reset_parameters()
        self.norm.reset_parameters()

    def forward(self, x: Tensor, batch: Tensor, batch_size: int) -> Tensor:
        r"""Forward pass.

        Args:
            x (torch.Tensor): The vertex attributes.
            batch (torch.Tensor): The graph of each vertex.
            batch_size (int): The number of graphs :math:`B`.
        """
        norm = self.norm if self.training else self.norm.module  # PyG's asks how many rows there are: it cannot be exported
        encoding = norm(self.encode(x, batch, dim_size=batch_size)).relu()
        return torch.cat([global_max_pool(x, batch, batch_size), global_mean_pool(x, batch, batch_size), encoding], dim=1)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.channels}, num_components={self.encode.num_components})"
