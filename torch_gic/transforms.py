"""PyG transforms that compute fields and clusters once, ahead of training."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform
from torch_geometric.typing import SparseTensor

from torch_gic._checks import check_at_least, count_nodes
from torch_gic.coarsening import cluster
from torch_gic.fields import receptive_fields
from torch_gic.nn.pool.vigmm_pool import VIGMMPool


class ReceptiveFields(BaseTransform):
    r"""Stores the multi-scale receptive fields (:func:`~torch_gic.receptive_fields`) of a graph as
    :obj:`data.fields`, which :class:`~torch_gic.GICConv` and :class:`~torch_gic.GIC` take as :obj:`fields=data.fields`.

    Use it as :obj:`pre_transform` of a dataset: the fields are then computed once and stored with it. PyG's
    :class:`DataLoader` and :class:`Batch` join the fields of several graphs. The edge weights are :obj:`data.edge_weight`, or
    ones.

    Args:
        num_scales (int, optional): The number of scales :math:`K`. (default: :obj:`1`)
        add_self_loops (bool, optional): Whether each node is in its own field. (default: :obj:`False`)
        max_neighbors (int, optional): The largest number of field members per node. (default: :obj:`None`)

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from torch_gic import ReceptiveFields
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> data = ReceptiveFields(num_scales=2)(Data(edge_index=path, num_nodes=3))
        >>> data.fields["index"].shape, data.fields["settings"]
        (torch.Size([2, 9]), 'num_scales=2, add_self_loops=False, max_neighbors=None')
    """

    def __init__(self, num_scales: int = 1, add_self_loops: bool = False, max_neighbors: int | None = None) -> None:
        check_at_least(num_scales, "num_scales", 1)
        if max_neighbors is not None:
            check_at_least(max_neighbors, "max_neighbors", 1)
        self.num_scales = num_scales
        self.add_self_loops = add_self_loops
        self.max_neighbors = max_neighbors

    def forward(self, data: Data) -> Data:
        fields = receptive_fields(
            _edges(data),
            data.edge_weight,
            num_nodes=count_nodes(data),
            num_scales=self.num_scales,
            add_self_loops=self.add_self_loops,
            max_neighbors=self.max_neighbors,
        )
        data.fields = fields.to_dict()
        return data

    def __repr__(self) -> str:
        # PyG compares this text with the one stored beside a processed dataset: it has to name every setting.
        return (
            f"{self.__class__.__name__}(num_scales={self.num_scales}, add_self_loops={self.add_self_loops}, "
            f"max_neighbors={self.max_neighbors})"
        )


class PreCoarsen(BaseTransform):
    r"""Stores the clusters of several coarsenings, one after the other: those of the nodes as :obj:`data.cluster_1`, those of
    these clusters as :obj:`data.cluster_2`, and so on.

    Pass one of them to :class:`~torch_gic.VIGMMPool`, as :obj:`cluster=data.cluster_1`, or all to :class:`~torch_gic.GIC`, as
    :obj:`clusters=[data.cluster_1, data.cluster_2]`. The influence :math:`h` is constant, so nothing is learnt.

    As a :obj:`pre_transform` of a dataset, it saves this work in training. Clusters are numbered from 0 in each graph, also
    after PyG's :class:`DataLoader` has joined several graphs. The edge weights are :obj:`data.edge_weight`, or ones.

    Args:
        ratios (float or int): The ratio of each coarsening, as in :class:`~torch_gic.VIGMMPool`.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from torch_gic import PreCoarsen
        >>> path = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
        >>> data = PreCoarsen(0.5, 0.5)(Data(edge_index=path, num_nodes=4))
        >>> data.cluster_1.tolist(), data.cluster_2.tolist()
        ([0, 0, 1, 1], [0, 0])
    """

    def __init__(self, *ratios: float | int) -> None:
        if not ratios:
            raise ValueError("Expected at least one ratio, as in PreCoarsen(0.5, 0.5) (got none)")
        self.ratios = ratios
        self.pools = [VIGMMPool(None, ratio) for ratio in ratios]  # type: ignore[abstract]  # as GICConv

    def forward(self, data: Data) -> Data:
        edges, weight, num_nodes = _edges(data), data.edge_weight, count_nodes(data)
        if not num_nodes:
            raise ValueError("Expected 'data' to hold at least one node (got none)")
        x = torch.empty(num_nodes, 0)
        for level, pool in enumerate(self.pools, start=1):
            x, edges, weight, _, select = pool(x, edges, weight)
            data[f"cluster_{level}"] = select.cluster_index
        return data

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({', '.join(map(str, self.ratios))})"


class Cluster(BaseTransform):
    r"""Stores the cluster of each node (:func:`~torch_gic.cluster`) as :obj:`data.cluster`, numbered from 0 in each graph.

    The edge weights are :obj:`data.edge_weight`, or ones.

    Args:
        num_clusters (int, optional): The number of clusters per graph.
        ratio (float, optional): The number of clusters per node, in place of :obj:`num_clusters`.
        max_size (int, optional): The largest number of nodes per cluster. (default: any)

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from torch_gic import Cluster
        >>> path = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
        >>> Cluster(num_clusters=2)(Data(edge_index=path, num_nodes=4)).cluster.tolist()
        [0, 0, 1, 1]
    """

    def __init__(self, num_clusters: int | None = None, ratio: float | None = None, max_size: int | None = None) -> None:
        self.num_clusters = num_clusters
        self.ratio = ratio
        self.max_size = max_size

    def forward(self, data: Data) -> Data:
        data.cluster = cluster(
            _edges(data),
            self.num_clusters,
            self.ratio,
            edge_weight=data.edge_weight,
            max_size=self.max_size,
            num_nodes=count_nodes(data),
        )
        return data

    def __repr__(self) -> str:
        settings = f"num_clusters={self.num_clusters}, ratio={self.ratio}, max_size={self.max_size}"
        return f"{self.__class__.__name__}({settings})"


def _edges(data: Data) -> Tensor | SparseTensor:
    if not isinstance(data, Data):
        raise TypeError(f"Expected 'data' to be a homogeneous Data object (got {type(data).__name__})")
    edges = data.adj_t if data.edge_index is None and "adj_t" in data else data.edge_index
    if edges is None:
        raise ValueError("Expected 'data' to have an 'edge_index' or an 'adj_t' (got neither)")
    return edges
