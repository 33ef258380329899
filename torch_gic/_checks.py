"""Checks of arguments. Each error names the argument, what was expected and what was passed."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Data
from torch_geometric.typing import SparseTensor
from torch_geometric.utils import is_sparse, to_edge_index

MAX_SCALES = 1024
MAX_EMPTY_GRAPHS = 10_000_000  # a larger number is an error in the batch vector
MAX_NODES_WITHOUT_EDGES = 10_000_000  # where nobody says how many nodes there are


def as_edge_list(
    edge_index: Tensor | SparseTensor,
    edge_weight: Tensor | None = None,
    num_nodes: int | None = None,
    look: bool = True,
) -> tuple[Tensor, Tensor | None, int]:
    """Converts every adjacency PyG accepts (edge list, EdgeIndex, torch.sparse, SparseTensor) to one checked edge list.

    With ``look=False``, values are not checked. As everywhere in PyG, a sparse matrix is the transposed adjacency: its rows
    are the targets, its columns the sources.
    """
    if is_sparse(edge_index):
        if edge_weight is not None:
            raise ValueError("Expected 'edge_weight' to be None when 'edge_index' is a sparse matrix, which holds them")
        if edge_index.size(0) != edge_index.size(1):
            size = [edge_index.size(0), edge_index.size(1)]
            raise ValueError(f"Expected 'edge_index' to be a square matrix (got {size})")
        num_nodes = edge_index.size(0) if num_nodes is None else num_nodes
        edge_index, edge_weight = entries_of(edge_index)
    if not isinstance(edge_index, Tensor):
        raise TypeError(f"Expected 'edge_index' to be a tensor or a sparse matrix (got {type(edge_index).__name__})")
    if isinstance(edge_index, EdgeIndex):
        if num_nodes is None and edge_index.sparse_size() != (None, None):
            num_nodes = max(edge_index.get_sparse_size())
        edge_index = edge_index.as_tensor()

    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f"Expected 'edge_index' to have shape [2, num_edges] (got {list(edge_index.shape)})")
    if edge_index.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"Expected 'edge_index' to hold integers (got {edge_index.dtype})")
    if num_nodes is None or (look and not torch.compiler.is_compiling()):  # a traced model cannot look at values
        lowest, highest = torch.stack(edge_index.aminmax()).tolist() if edge_index.numel() > 0 else (0, -1)
        if num_nodes is None:
            num_nodes = highest + 1
            check_guess(num_nodes, edge_index.size(1))
        if highest >= num_nodes or lowest < 0:
            raise ValueError(f"Expected 'edge_index' to hold nodes in [0, {num_nodes - 1}] (got {lowest} to {highest})")
    if edge_weight is not None and look:
        check_weight(edge_weight, "edge_weight", edge_index.size(1))
    return edge_index.long(), edge_weight, num_nodes


def check_guess(num_nodes: int, num_edges: int) -> None:
    """Memory and time are taken for every node up to the highest that has an edge."""
    if num_nodes > MAX_NODES_WITHOUT_EDGES + 2 * num_edges:
        raise ValueError(
            f"Expected 'num_nodes', since most nodes have no edge (got node {num_nodes - 1} in 'edge_index', and {num_edges}"
            " edges)"
        )


def count_nodes(data: Data) -> int:
    """The number of nodes. PyG guesses it from the edges, where nothing else says it."""
    num_nodes = data.num_nodes or 0
    if not ("num_nodes" in data or "adj_t" in data or any(map(data.is_node_attr, data.keys()))):
        check_guess(num_nodes, data.num_edges)
    return num_nodes


def entries_of(matrix: Tensor | SparseTensor) -> tuple[Tensor, Tensor]:
    """The edges of a sparse matrix and their weights: copies, since views of a sparse tensor make torch.compile fail."""
    (target, source), weight = to_edge_index(matrix)
    return torch.stack([source, target]), weight.clone()


def check_weight(weight: Tensor, name: str, size: int) -> None:
    """Weights are one per row, finite and non-negative."""
    if not isinstance(weight, Tensor):
        raise TypeError(f"Expected '{name}' to be a tensor (got {type(weight).__name__})")
    if not weight.is_floating_point():
        hint = "; weights are converted by .float(), a batch vector is passed by its name, as batch="  # a common mistake
        raise TypeError(f"Expected '{name}' to be floating point (got {weight.dtype}){hint}")
    if weight.dim() != 1 or weight.size(0) != size:
        hint = "; .squeeze(1) converts it" if tuple(weight.shape) == (size, 1) else ""
        raise ValueError(f"Expected '{name}' to have shape [{size}] (got {list(weight.shape)}){hint}")
    if torch.compiler.is_compiling():
        return
    lowest, highest = torch.stack(weight.detach().aminmax()).tolist() if size > 0 else (0, 0)
    if not (math.isfinite(lowest) and math.isfinite(highest)):
        raise ValueError(f"Expected '{name}' to be finite (got NaN or infinity)")
    if lowest < 0:
        raise ValueError(f"Expected '{name}' to be non-negative (got a minimum of {lowest:g})")


def check_batch(batch: Tensor | None, num_nodes: int, edge_index: Tensor | None = None, look: bool = True) -> None:
    """A batch vector names the graph of each node, and no edge leads from one graph to another.

    With ``look=False``, values are not checked: :func:`count_graphs` does it.
    """
    if batch is None or torch.compiler.is_compiling():  # Inductor fails after a comparison of sizes that end in a graph break
        return
    if not isinstance(batch, Tensor):
        raise TypeError(f"Expected 'batch' to be a tensor (got {type(batch).__name__})")
    if batch.dim() != 1 or batch.size(0) != num_nodes:
        raise ValueError(f"Expected 'batch' to have shape [{num_nodes}], one entry per node (got {list(batch.shape)})")
    if batch.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"Expected 'batch' to hold integers (got {batch.dtype})")
    if look:
        count_graphs(batch, batch.new_empty(2, 0) if edge_index is None else edge_index)


def count_graphs(batch: Tensor, edge_index: Tensor, influence: Tensor | None = None) -> tuple[int, bool]:
    """Checks the values of a batch vector, and the influence of the nodes if there is one.

    Gives the number of graphs, and whether the batch vector is sorted. The host waits for the device once.
    """
    if batch.numel() == 0:
        return 0, True
    first, last = batch[edge_index]
    crosses, unsorted = (first != last).any(), (batch[1:] < batch[:-1]).any()
    unknown = torch.zeros_like(crosses) if influence is None else influence.isnan().any()
    flags = (flag.to(batch.dtype) for flag in (crosses, unsorted, unknown))
    lowest, highest, crosses, unsorted, unknown = torch.stack([*batch.aminmax(), *flags]).tolist()
    if lowest < 0:
        raise ValueError(f"Expected 'batch' to be non-negative (got a minimum of {lowest})")
    if highest >= MAX_EMPTY_GRAPHS + batch.numel():  # each graph up to the last takes memory
        raise ValueError(f"Expected 'batch' to number graphs from 0 on (got {highest} as the number of one)")
    if crosses:
        raise ValueError("Expected every edge of 'edge_index' to stay inside one graph of 'batch' (got edges between graphs)")
    if unknown:
        raise ValueError("Expected 'x' and the weights of 'h' to be numbers (got NaN)")
    return highest + 1, not unsorted


def number_clusters(cluster: Tensor, batch: Tensor) -> tuple[Tensor, int]:
    """Checks clusters, and numbers them over all graphs. Gives them and their number.

    Clusters must have no gaps, and lie inside one graph each. They may be numbered from 0 in each graph, as after a loader has
    joined graphs.
    """
    if cluster.shape != batch.shape:
        raise ValueError(
            f"Expected 'cluster' to have shape {list(batch.shape)}, one entry per node (got {list(cluster.shape)})"
        )
    if cluster.dtype != torch.int64:
        raise TypeError(f"Expected 'cluster' to hold torch.int64 (got {cluster.dtype})")
    if cluster.numel() == 0:
        return cluster, 0
    if int(cluster.min()) < 0:
        raise ValueError(f"Expected 'cluster' to be non-negative (got a minimum of {int(cluster.min())})")
    num_graphs, last = int(batch.max()) + 1, torch.iinfo(torch.int64).max
    first = cluster.new_full((num_graphs,), last).scatter_reduce(0, batch, cluster, "amin")
    if bool(((first == 0) | (first == last)).all()):
        size = cluster.new_zeros(num_graphs).scatter_reduce(0, batch, cluster + 1, "amax")
        cluster = cluster + (size.cumsum(0) - size)[batch]
    num_clusters = int(cluster.max()) + 1
    if num_clusters > cluster.numel():  # before they take memory
        raise ValueError(f"Expected 'cluster' to be below {cluster.numel()}, the number of nodes (got {num_clusters - 1})")
    graph = torch.full((num_clusters,), -1, device=cluster.device, dtype=batch.dtype).scatter(0, cluster, batch)
    if bool((graph < 0).any()):
        missing = (graph < 0).nonzero()[0].item()
        raise ValueError(f"Expected every cluster up to the highest to have a node (got none in cluster {missing})")
    if bool((graph[cluster] != batch).any()):
        raise ValueError("Expected every cluster to stay inside one graph of 'batch' (got clusters across graphs)")
    return cluster, num_clusters


def check_features(x: Tensor, in_channels: int, dtype: torch.dtype | None = None, name: str = "x") -> None:
    """The features of nodes or edges: ``[num_nodes, in_channels]``, in the type of the layer's parameters."""
    if not isinstance(x, Tensor):
        raise TypeError(f"Expected '{name}' to be a tensor (got {type(x).__name__})")
    if x.dim() != 2 or (in_channels > 0 and x.size(1) != in_channels):
        rows = "num_edges" if name == "edge_attr" else "num_nodes"
        raise ValueError(f"Expected '{name}' to have shape [{rows}, {in_channels}] (got {list(x.shape)})")
    if not x.is_floating_point():
        raise TypeError(f"Expected '{name}' to be floating point (got {x.dtype})")
    if x.layout != torch.strided:
        raise TypeError(f"Expected '{name}' to be dense (got {x.layout}); .to_dense() converts it")
    if dtype is not None and x.dtype != dtype and not torch.is_autocast_enabled(x.device.type):
        raise TypeError(f"Expected '{name}' to be {dtype}, as the parameters of the layer are (got {x.dtype})")


def check_at_least(value: int, name: str, minimum: int) -> None:
    """Counts such as ``num_scales`` are whole numbers of at least ``minimum``."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"Expected '{name}' to be an int (got {type(value).__name__})")
    if value < minimum:
        raise ValueError(f"Expected '{name}' to be at least {minimum} (got {value})")


def check_scales(num_scales: int) -> None:
    check_at_least(num_scales, "num_scales", 1)
    if num_scales > MAX_SCALES:
        raise ValueError(f"Expected 'num_scales' to be at most {MAX_SCALES} (got {num_scales})")
