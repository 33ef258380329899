"""Parts of receptive fields: those that some vertices depend on, and one batch of vertices after the other."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

Fields = tuple[Tensor, Tensor]


def trim_fields(fields: Fields, num_seeds: int, num_layers: int) -> list[tuple[int, Fields]]:
    """What each of several layers has to compute for the first :obj:`num_seeds` vertices: the number of its outputs, which are
    those of the first vertices, and their fields. The first layer comes first.

    Loaders number vertices by their distance to the seeds. Then the first vertices, up to the last that is in a needed field,
    are hardly more than the needed ones; in any other order nothing is wrong, only less is saved.
    """
    index, weight = fields
    steps: list[tuple[int, Fields]] = []
    for _ in range(num_layers):
        kept = index[1] < num_seeds
        needed = index[:, kept]
        steps.append((num_seeds, (needed, weight[kept])))
        num_seeds = max(num_seeds, int(needed[0].max()) + 1 if needed.size(1) > 0 else 0)
    return steps[::-1]


def split_fields(fields: Fields, num_nodes: int, batch_size: int) -> Iterator[tuple[int, int, Tensor, Fields]]:
    """One batch of vertices after the other: the first vertex, the one behind the last, the members of their fields, and these
    fields with members and vertices numbered by their place in the batch."""
    index, weight = fields
    if bool((index[1].diff() < 0).any()):
        order = index[1].argsort(stable=True)
        index, weight = index[:, order], weight[order]
    for start in range(0, max(num_nodes, 1), batch_size):  # of no vertices, one empty batch
        end = min(start + batch_size, num_nodes)
        first, last = torch.searchsorted(index[1].contiguous(), torch.tensor([start, end], device=index.device)).tolist()
        members, position = torch.unique(index[0, first:last], return_inverse=True)
        yield start, end, members, (torch.stack([position, index[1, first:last] - start]), weight[first:last])
