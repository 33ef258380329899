"""The readout: from the nodes of a graph to one vector."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.nn import global_max_pool, global_mean_pool

from torch_gic._checks import check_batch
from torch_gic.encoding.normalize import soft_bound
from torch_gic.nn.aggr.gaussian_aggregation import GaussianAggregation
from torch_gic.nn.aggr.lenient_batch_norm import LenientBatchNorm

MAX_DEVIATIONS = 10.0  # hardly any training graph has more


class GaussianReadout(torch.nn.Module):
    r"""Describes a graph by the maximum, the mean and the Gaussian encoding of the features of its nodes

    .. math::
        \max_i \mathbf{x}_i \, \Vert \, \frac{1}{m} \sum_i \mathbf{x}_i \, \Vert \,
        \mathrm{ReLU} \bigl( \mathrm{BatchNorm} ( \mathrm{GaussianAggregation}(\{ \mathbf{x}_i \}) ) \bigr),

    where :math:`\mathrm{BatchNorm}` is softly bounded, so a graph unlike all others cannot dominate. The encoding tells how
    features are distributed over the graph, which the maximum and the mean do not.

    Args:
        channels (int): Size of each feature vector.
        num_components (int, optional): The number of components of the mixture. (default: :obj:`5`)

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F)`, batch vector :math:`(|\mathcal{V}|)`
        - **output:** :math:`(B, 3 F)`, one row per graph
    """

    def __init__(self, channels: int, num_components: int = 5) -> None:
        super().__init__()
        self.channels = channels
        self.encode = GaussianAggregation(channels, num_components=num_components)
        self.norm = LenientBatchNorm(channels)

    def reset_parameters(self) -> None:
        self.encode.reset_parameters()
        self.norm.reset_parameters()

    def forward(self, x: Tensor, batch: Tensor | None, batch_size: int) -> Tensor:
        r"""Forward pass.

        Args:
            x (torch.Tensor): The node features.
            batch (torch.Tensor, optional): The graph of each node. With :obj:`None`, all nodes are in one.
            batch_size (int): The number of graphs :math:`B`.
        """
        batch = torch.zeros(x.size(0), dtype=torch.long, device=x.device) if batch is None else batch
        check_batch(batch, x.size(0), look=False)  # the encoding looks at the values
        encoding = soft_bound(self.norm(self.encode(x, batch, dim_size=batch_size)), MAX_DEVIATIONS).relu()
        return torch.cat([global_max_pool(x, batch, batch_size), global_mean_pool(x, batch, batch_size), encoding], dim=1)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.channels}, num_components={self.encode.num_components})"
