"""What merging and moving share: one program for a graph, with memory that only this program uses.

A program runs all rounds by itself, so the host does not wait in between. Barriers surround each write that other threads
read. Vectors have one element per node (or cluster) of the graph. Sums and choices over pairs go through the pairs in blocks.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch_geometric.utils import cumsum

from torch_gic.coarsening import segments
from torch_gic.coarsening.graph import UndirectedGraph

MOST_NODES = 512  # of a graph that gets a program; larger ones keep the whole device busy as reference
TILE = 512  # pairs that a program looks at together; twice as many spill (python -m benchmark.gpu.compile)
WORDS, REALS = tl.constexpr(7), tl.constexpr(3)  # vectors of whole numbers and of others that a program keeps in memory
ABSENT = tl.constexpr(-1.0)  # instead of a link, which may be 0 by underflow
LAST = tl.constexpr(segments.LAST)
GRID = tl.constexpr(segments.GRID)


class GraphBlocks(NamedTuple):
    """A block of numbers for each graph that is small enough, side by side."""

    graph: Tensor  # of each node
    small: Tensor  # which graphs have a block
    begin: Tensor  # of the block of each graph
    size: int  # of all blocks
    most: int  # nodes of one graph

    @property
    def has_large(self) -> bool:
        return self.most > MOST_NODES

    def tile(self) -> dict[str, int]:
        block = max(16, triton.next_power_of_2(min(self.most, MOST_NODES)))
        return {"MOST": MOST_NODES, "BLOCK": block, "ROWS": TILE // block, "num_warps": 4 if block <= 256 else 8}

    def scratch(self) -> tuple[Tensor, Tensor]:
        num_nodes = self.graph.numel()
        words = self.graph.new_empty(WORDS.value * num_nodes)
        return words, words.new_empty(REALS.value * num_nodes, dtype=torch.float64)


def graph_blocks(ptr: Tensor, width: Tensor, num_nodes: int) -> GraphBlocks:
    """Blocks of ``width`` rows, one column for each node."""
    size = ptr.diff()
    small = size <= MOST_NODES
    begin = cumsum(torch.where(small, size * width, 0))
    graph = torch.repeat_interleave(torch.arange(size.numel(), device=ptr.device), size, output_size=num_nodes)
    # Waits for the device: this is how much memory is needed.
    numbers = torch.stack([begin[-1], size.max()]).tolist()
    return GraphBlocks(graph, small, begin, *numbers)


def check(blocks: GraphBlocks, row: Tensor, col: Tensor, node_weight: Tensor) -> None:
    """On the device, which says so later: looking at them would wait for it."""
    torch._assert_async((blocks.graph[row] == blocks.graph[col]).all(), "Expected every edge to stay inside a graph")
    positive = (node_weight > 0) & (node_weight < torch.inf)
    torch._assert_async(positive.all(), "Expected 'node_weight' to be positive and finite")


def without(graph: UndirectedGraph, left_out: Tensor) -> UndirectedGraph:
    """The graph without some of its entries."""
    row, kept = graph.row[~left_out], ~left_out
    rowptr = cumsum(torch.bincount(row, minlength=graph.num_nodes))
    return UndirectedGraph(rowptr, graph.col[kept], graph.weight[kept])


@triton.jit
def write(to, value, mask):
    """What others read: not before all have read what was there, and before any of them goes on."""
    tl.debug_barrier()
    tl.store(to, value, mask=mask)
    tl.debug_barrier()


@triton.jit
def on_grid(objective):
    """To the nearest step of the grid; halves to the even one, as PyTorch rounds."""
    scaled = objective * GRID
    below = tl.floor(scaled)
    rest = scaled - below
    step = below.to(tl.int64)
    return step + ((rest > 0.5) | ((rest == 0.5) & ((step & 1) == 1))).to(tl.int64)


@triton.jit
def mix(value):
    """The finalizer of SplitMix64, as in the references."""
    z = value.to(tl.uint64, bitcast=True)
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    return (z ^ (z >> 31)).to(tl.int64, bitcast=True)


@triton.jit
def sum_before(first_key, second_key, group, amount, i, n, words, reals, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    """For each place, the sum of the amounts of its group whose keys come before its own. Takes three words, one real."""
    tl.debug_barrier()
    tl.store(words + i, first_key, mask=i < n)
    tl.store(words + n + i, second_key, mask=i < n)
    tl.store(words + 2 * n + i, group, mask=i < n)
    tl.store(reals + i, amount, mask=i < n)
    tl.debug_barrier()
    total = tl.zeros([BLOCK], tl.float64)
    for start in range(0, n, ROWS):
        r = start + tl.arange(0, ROWS)
        one = tl.load(words + r, mask=r < n, other=0)[:, None]
        two = tl.load(words + n + r, mask=r < n, other=0)[:, None]
        of = tl.load(words + 2 * n + r, mask=r < n, other=-1)[:, None]
        given = tl.load(reals + r, mask=r < n, other=0)[:, None]
        before = (one < first_key[None, :]) | ((one == first_key[None, :]) & (two < second_key[None, :]))
        total += tl.sum(tl.where(before & (of == group[None, :]), given, 0), axis=0)
    return total
