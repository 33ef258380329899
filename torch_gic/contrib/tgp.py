"""VIGMMPool as a pooler of Torch Geometric Pool (``pip install torch-geometric-pool``)."""

from __future__ import annotations

from typing import Any

import torch
from tgp.connect import SparseConnect
from tgp.lift import BaseLift
from tgp.poolers import pooler_map
from tgp.reduce import AggrReduce, get_aggr
from tgp.select import Select, SelectOutput
from tgp.src import BasePrecoarseningMixin, PoolingOutput, SRCPooling
from torch import Tensor
from torch_geometric.typing import SparseTensor

from torch_gic._checks import as_edge_list
from torch_gic.nn.pool.vigmm_select import VIGMMSelect


class VIGMMSelector(Select):
    """The selection of :class:`~torch_gic.VIGMMPool` in the form of tgp."""

    is_dense = False

    def __init__(self, select: VIGMMSelect, s_inv_op: str = "transpose") -> None:
        super().__init__()
        self.select = select
        self.s_inv_op = s_inv_op

    def reset_parameters(self) -> None:
        self.select.reset_parameters()

    def forward(
        self,
        x: Tensor | None = None,
        edge_index: Tensor | SparseTensor | None = None,
        edge_weight: Tensor | None = None,
        *,
        batch: Tensor | None = None,
        num_nodes: int | None = None,
    ) -> SelectOutput:
        if edge_index is None:
            raise ValueError("Expected 'edge_index' to be given (got None)")
        if x is None and self.select.in_channels is not None:
            raise ValueError("Expected 'x' to be given, or the pooler to be made with in_channels=None (got None)")
        edge_index, edge_weight, num_nodes = as_edge_list(
            edge_index, _flat(edge_weight), num_nodes if x is None else x.size(0)
        )
        if x is None:
            x = torch.empty(num_nodes, 0, device=edge_index.device)
        out = self.select(x, edge_index, edge_weight, batch)
        return SelectOutput(
            cluster_index=out.cluster_index,
            num_nodes=num_nodes,
            num_supernodes=out.num_clusters,
            weight=out.weight,
            s_inv_op=self.s_inv_op,
            batch=batch,
        )

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.select})"


class VIGMMPooling(BasePrecoarseningMixin, SRCPooling):
    r"""The coarsening of :class:`~torch_gic.VIGMMPool` with the interface of Torch Geometric Pool.

    + The :math:`\texttt{select}` operator is :class:`VIGMMSelector`.
    + The :math:`\texttt{reduce}` operator is :class:`~tgp.reduce.AggrReduce`.
    + The :math:`\texttt{connect}` operator is :class:`~tgp.connect.SparseConnect`.
    + The :math:`\texttt{lift}` operator is :class:`~tgp.lift.BaseLift`.

    With :obj:`in_channels=None` nothing is learnt, and :class:`~tgp.data.PreCoarsening` takes it. Importing this module
    makes it known to :func:`tgp.poolers.get_pooler` as :obj:`"vigmm"`.

    Args:
        in_channels (int, optional): Size of each feature vector, or :obj:`None` for a constant influence.
            (default: :obj:`None`)
        ratio, affinity, soft, beta, num_iterations (optional): As in :class:`~torch_gic.VIGMMPool`.
        reduce (str, optional): The aggregation of features. (default: :obj:`"max"`)
        lift (str, optional): As in tgp. (default: :obj:`"precomputed"`)
        s_inv_op (str, optional): As in tgp. (default: :obj:`"transpose"`)
        lift_red_op (str, optional): As in tgp. (default: :obj:`"sum"`)
        connect_red_op (str, optional): As in tgp. (default: :obj:`"sum"`)
        cached (bool, optional): As in tgp. (default: :obj:`False`)
        remove_self_loops (bool, optional): As in tgp, whose default this is. (default: :obj:`True`)
        degree_norm (bool, optional): As in tgp. (default: :obj:`False`)
        edge_weight_norm (bool, optional): As in tgp. (default: :obj:`False`)
    """

    def __init__(
        self,
        in_channels: int | None = None,
        ratio: float | int = 0.25,
        affinity: str = "cut",
        soft: bool | None = None,
        beta: float | None = None,
        num_iterations: int = 20,
        reduce: str = "max",
        lift: str = "precomputed",
        s_inv_op: str = "transpose",
        lift_red_op: str = "sum",
        connect_red_op: str = "sum",
        cached: bool = False,
        remove_self_loops: bool = True,
        degree_norm: bool = False,
        edge_weight_norm: bool = False,
    ) -> None:
        super().__init__(
            selector=VIGMMSelector(VIGMMSelect(in_channels, ratio, affinity, soft, beta, num_iterations), s_inv_op),
            reducer=AggrReduce(get_aggr(reduce)),
            lifter=BaseLift(matrix_op=lift, reduce_op=lift_red_op),
            connector=SparseConnect(
                reduce_op=connect_red_op,
                remove_self_loops=remove_self_loops,
                degree_norm=degree_norm,
                edge_weight_norm=edge_weight_norm,
            ),
            cached=cached,
        )

    def forward(
        self,
        x: Tensor,
        adj: Tensor | SparseTensor | None = None,
        edge_weight: Tensor | None = None,
        so: SelectOutput | None = None,
        batch: Tensor | None = None,
        lifting: bool = False,
    ) -> PoolingOutput | Tensor:
        r"""Coarsens, or with :obj:`lifting=True` brings :obj:`x` back to the nodes of the selection :obj:`so`."""
        if lifting:
            if so is None:
                raise ValueError("Expected 'so', the selection to lift by, to be given with lifting=True (got None)")
            return self.lift(x_pool=x, so=so)
        so = self.select(x=x, edge_index=adj, edge_weight=edge_weight, batch=batch)
        if so.num_nodes != x.size(0):  # a cached one
            raise ValueError(
                f"Expected 'x' to have {so.num_nodes} rows, as the graph whose selection is cached (got {x.size(0)});"
                " .clear_cache() forgets it"
            )
        x_pool, batch_pool = self.reduce(x=x, so=so, batch=batch)
        edge_index, edge_weight = self.connect(edge_index=adj, so=so, edge_weight=edge_weight, batch_pooled=batch_pool)
        return PoolingOutput(x=x_pool, edge_index=edge_index, edge_weight=edge_weight, batch=batch_pool, so=so)

    def extra_repr_args(self) -> dict[str, Any]:
        return {"cached": self.cached}


pooler_map["vigmm"] = VIGMMPooling


def _flat(edge_weight: Tensor | None) -> Tensor | None:
    """Weights of shape [num_edges, 1], which tgp also takes, as [num_edges]."""
    return edge_weight.squeeze(1) if edge_weight is not None and edge_weight.dim() == 2 else edge_weight
