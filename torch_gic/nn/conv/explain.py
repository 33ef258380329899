"""PyG's edge masks and hooks, for layers that send no messages along edges."""

from __future__ import annotations

from typing import Any, NoReturn

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing
from torch_geometric.typing import SparseTensor
from torch_geometric.utils import is_sparse

MASKED_ATTRIBUTE = "_torch_gic_masked"  # marks an edge_index whose weights hold the mask already


class ExplainableConv(MessagePassing):
    """A layer whose edge weights are multiplied by the edge mask of an explainer.

    After a pooling, the weights of the coarse edges hold the mask already and are not masked again. There are no messages, so
    registering a hook on them raises an error.
    """

    def masked_weight(self, edge_index: Tensor | SparseTensor, edge_weight: Tensor | None) -> Tensor | None:
        """The weights times the edge mask, if an explainer has set one."""
        if not self.explain:
            return edge_weight
        mask = self._edge_mask
        if mask is None:
            raise NotImplementedError(
                f"{type(self).__name__} has no messages that GraphMaskExplainer could replace; use an explainer that masks"
                " edges, such as GNNExplainer"
            )
        if is_sparse(edge_index):
            raise ValueError("Expected 'edge_index' to be a tensor of shape [2, num_edges] to be explained (got a sparse one)")
        if hasattr(edge_index, MASKED_ATTRIBUTE):
            if edge_weight is None:
                raise ValueError("Expected the 'edge_weight' of the pooling, which holds the edge mask (got None)")
            return edge_weight
        between, explained = edge_index[0] != edge_index[1], self._loop_mask
        if mask.numel() != edge_index.size(1) or not (explained is None or torch.equal(between, explained)):
            raise ValueError(
                f"Expected the {mask.numel()} edges that are explained (got {edge_index.size(1)}, others); edges behind a"
                " pooling that is not VIGMMPool's cannot be explained by those of the input"
            )
        mask = mask.sigmoid() if self._apply_sigmoid else mask
        mask = torch.where(between, mask, 1)  # as PyG does: loops are not explained
        return mask if edge_weight is None else edge_weight * mask.to(edge_weight.dtype)

    def mark_masked(self, edge_index: Tensor) -> None:
        """Marks coarse edges, whose weights hold the edge mask."""
        if self.explain:
            setattr(edge_index, MASKED_ATTRIBUTE, True)

    def _no_hook(self, hook: Any) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} sends no messages, and would never call this hook")

    register_propagate_forward_pre_hook = _no_hook
    register_propagate_forward_hook = _no_hook
    register_message_forward_pre_hook = _no_hook
    register_message_forward_hook = _no_hook
    register_aggregate_forward_pre_hook = _no_hook
    register_aggregate_forward_hook = _no_hook
    register_message_and_aggregate_forward_pre_hook = _no_hook
    register_message_and_aggregate_forward_hook = _no_hook
    register_edge_update_forward_pre_hook = _no_hook
    register_edge_update_forward_hook = _no_hook
