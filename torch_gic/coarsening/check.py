"""What the references of coarsening refuse, as the kernels do: batches and clusters that are malformed."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_gic.kernels.operands import (
    can_look,
    check_boundaries,
    check_numbers,
    check_range,
    check_tensor,
    check_values,
)

MOST = 2**31 - 1  # graphs or clusters


def check_clusters(cluster: Tensor, num_nodes: int, num_clusters: int) -> None:
    """The cluster of each node is one of so many."""
    check_tensor(cluster, "cluster", (num_nodes,), torch.int64)
    if torch.compiler.is_compiling():
        return
    if not 0 <= num_clusters <= MOST:
        raise ValueError(f"Expected 'num_clusters' to lie in [0, {MOST}] (got {num_clusters})")
    check_range(cluster, "cluster", num_clusters)


def check_clusters_of_graphs(cluster: Tensor, name: str, batch: Tensor, offset: Tensor) -> None:
    """Every node is in a cluster of its graph, and none is empty."""
    check_tensor(cluster, name, (batch.numel(),), torch.int64)
    if not can_look(cluster):
        return
    inside = (cluster >= offset[batch]) & (cluster < offset[batch + 1])
    check_values((name, cluster, inside, "lie among the clusters of the node's own graph"))
    numbers = torch.arange(int(offset[-1]), device=offset.device)
    check_values((name, numbers, torch.isin(numbers, cluster), "leave none empty"))


def check_graphs(edge_index: Tensor, edge_weight: Tensor | None, influence: Tensor, batch: Tensor, num_graphs: int) -> None:
    """A batch of graphs: its nodes sorted by graph, and no edge from one to another."""
    if not 0 <= num_graphs <= MOST:
        raise ValueError(f"Expected 'num_graphs' to lie in [0, {MOST}] (got {num_graphs})")
    check_tensor(edge_index, "edge_index", (2, None), torch.int64)
    check_tensor(batch, "batch", (None,), torch.int64)
    check_tensor(influence, "influence", (batch.numel(),), torch.float64)
    if edge_weight is not None:
        check_tensor(edge_weight, "edge_weight", (edge_index.size(1),), torch.float32, torch.float64)
        check_numbers(edge_weight, "edge_weight", "finite and non-negative")
    check_numbers(influence, "influence", "positive and finite")  # nothing else could end the merging of clusters
    check_range(batch, "batch", num_graphs)
    check_range(edge_index, "edge_index", batch.numel())
    if not can_look(batch):
        return
    check_values(("batch", batch[1:], batch[1:] >= batch[:-1], "be sorted"))
    source, target = edge_index
    inside = batch[source] == batch[target]
    check_values(("edge_index", source, inside, "stay inside one graph of 'batch' with every edge"))


def check_affinity(
    diagonal: Tensor, rowptr: Tensor, col: Tensor, value: Tensor, node_weight: Tensor, ptr: Tensor, beta: Tensor
) -> None:
    """The inner products of the nodes of each graph, those with themselves in the diagonal only."""
    num_nodes = node_weight.numel()
    check_tensor(node_weight, "node_weight", (None,), torch.float64)
    check_tensor(diagonal, "diagonal", (num_nodes,), torch.float64)
    check_tensor(col, "col", (None,), torch.int64)
    check_tensor(value, "value", (col.numel(),), torch.float64)
    check_tensor(beta, "beta", (None,), torch.float64)
    check_tensor(rowptr, "rowptr", (num_nodes + 1,))
    check_tensor(ptr, "ptr", (beta.numel() + 1,))
    check_boundaries(rowptr, "rowptr", col.numel())
    check_boundaries(ptr, "ptr", num_nodes)
    for numbers, name in ((diagonal, "diagonal"), (value, "value"), (beta, "beta")):
        check_numbers(numbers, name)
    check_numbers(node_weight, "node_weight", "positive and finite")
    if not can_look(col):
        return
    nodes = torch.arange(num_nodes, device=col.device)
    row = torch.repeat_interleave(nodes, rowptr.diff(), output_size=col.numel())
    graph = torch.repeat_interleave(torch.arange(beta.numel(), device=col.device), ptr.diff(), output_size=num_nodes)
    begin, end = ptr[graph[row]], ptr[graph[row] + 1]
    check_values(
        ("col", col, (col >= begin) & (col < end), "stay inside one graph with every edge"),
        ("col", col, col != row, "hold no node in its own row, which is what 'diagonal' is for"),
    )


def check_ranks(rank: Tensor, batch: Tensor, ptr: Tensor) -> None:
    """From 0 on in each graph, each once."""
    check_tensor(rank, "rank", (batch.numel(),), torch.int64)
    if not can_look(rank):
        return
    inside = (rank >= 0) & (rank < (ptr[1:] - ptr[:-1])[batch])
    once = torch.bincount((rank + ptr[batch])[inside], minlength=rank.numel())
    check_values(
        ("rank", rank, inside, "lie below the number of nodes of the graph"),
        ("rank", torch.arange(rank.numel(), device=rank.device), once == 1, "hold every number of a graph once"),
    )
