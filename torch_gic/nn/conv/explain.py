"""What PyG's explainers and hooks find in a layer that does not send messages edge by edge."""

from __future__ import annotations

from typing import Any, NoReturn

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing
from torch_geometric.typing import SparseTensor
from torch_geometric.utils import is_sparse


class ExplainableConv(MessagePassing):
    """A layer whose edges act by their weights alone, so that a mask of edges is a factor of these weights.

    There are no messages: whoever registers a hook on them is told so.
    """

    def masked_weight(self, edge_index: Tensor | SparseTensor, edge_weight: Tensor | None) -> Tensor | None:
        """The weights times the edge mask, if an explainer has set one."""
        if not self.explain:
            return edge_weight
        mask = self._edge_mask
        if mask is None:
            raise NotImplementedError(
                f"{type(self).__name__} has no messages to replace, as GraphMaskExplainer does; take an explainer that masks"
                " edges, such as GNNExplainer"
            )
        if is_sparse(edge_index):
            raise ValueError("Expected 'edge_index' to be a tensor of shape [2, num_edges] to be explained (got a sparse one)")
        if mask.numel() != edge_index.size(1):
            raise ValueError(
                f"Expected an edge mask of {edge_index.size(1)} edges (got {mask.numel()}); are there other edges behind a"
                " pooling? These cannot be explained by the edges of the input"
            )
        mask = mask.sigmoid() if self._apply_sigmoid else mask
        mask = torch.where(edge_index[0] != edge_index[1], mask, 1)  # as PyG does: loops are not explained
        return mask if edge_weight is None else edge_weight * mask.to(edge_weight.dtype)

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
