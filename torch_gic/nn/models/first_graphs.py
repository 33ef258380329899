"""The graphs that initial values are taken from."""

from __future__ import annotations

from typing import Any

from torch_geometric.data import Batch, Data


def first_graphs(data: Any, num_nodes: int) -> Any:
    """The first graphs of a dataset or a loader as one batch, of at least ``num_nodes`` nodes if there are as many."""
    graphs: list[Any] = []
    count = 0
    for graph in [data] if isinstance(data, Data) else data:
        graphs += graph.to_data_list() if isinstance(graph, Batch) else [graph]
        count += int(graph.num_nodes or 0)
        if count >= num_nodes:
            break
    if count == 0:
        raise ValueError("Expected 'data' to hold at least one node (got none)")
    return Batch.from_data_list(graphs)
