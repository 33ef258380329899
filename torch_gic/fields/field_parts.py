"""Parts of receptive fields: those that seed nodes depend on, and those of batches of nodes."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from torch_gic.fields.fields import Fields


def trim_fields(fields: Fields, num_seeds: int, num_layers: int) -> list[Fields]:
    """The fields that each layer needs for the output of the first :obj:`num_seeds` nodes. The first layer comes first.

    A layer computes all nodes up to the last one that the next layer needs. Loaders number nodes by their distance to the
    seeds, so hardly any unneeded node is computed. In any other order the result is the same, but less is saved.
    """
    steps: list[Fields] = []
    for _ in range(num_layers):
        end = int(fields.rowptr[num_seeds])
        index, rowptr = fields.index[:, :end], fields.rowptr[: num_seeds + 1]
        needed = max(num_seeds, int(index[0].max()) + 1 if end > 0 else 0)
        steps.append(Fields(index, fields.weight[:end], rowptr, needed, None, fields.settings))
        num_seeds = needed
    return steps[::-1]


def split_fields(fields: Fields, batch_size: int) -> Iterator[tuple[int, int, Tensor, Fields]]:
    """Splits fields by batches of nodes. For each batch, yields its first node, the node after its last one, the members of
    its fields, and these fields. In them, members and nodes are numbered by their place in the batch."""
    for start in range(0, max(fields.num_nodes, 1), batch_size):  # of no nodes, one empty batch
        end = min(start + batch_size, fields.num_nodes)
        first, last = fields.rowptr[[start, end]].tolist()
        members, position = torch.unique(fields.index[0, first:last], return_inverse=True)
        index = torch.stack([position, fields.index[1, first:last] - start])
        rowptr = fields.rowptr[start : end + 1] - first
        yield start, end, members, Fields(index, fields.weight[first:last], rowptr, members.numel(), None, fields.settings)
