"""Parts of receptive fields: those that some nodes depend on, and one batch of nodes after the other."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from torch_gic.fields.fields import Fields


def trim_fields(fields: Fields, num_seeds: int, num_layers: int) -> list[Fields]:
    """What each of several layers has to compute for the first :obj:`num_seeds` nodes: fields of the first nodes, whose
    members are the first nodes too. The first layer comes first.

    Loaders number nodes by their distance to the seeds. Then the first nodes, up to the last that is in a needed field, are
    hardly more than the needed ones; in any other order nothing is wrong, only less is saved.
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
    """One batch of nodes after the other: the first node, the one behind the last, the members of their fields, and these
    fields with members and nodes numbered by their place in the batch."""
    for start in range(0, max(fields.num_nodes, 1), batch_size):  # of no nodes, one empty batch
        end = min(start + batch_size, fields.num_nodes)
        first, last = fields.rowptr[[start, end]].tolist()
        members, position = torch.unique(fields.index[0, first:last], return_inverse=True)
        index = torch.stack([position, fields.index[1, first:last] - start])
        rowptr = fields.rowptr[start : end + 1] - first
        yield start, end, members, Fields(index, fields.weight[first:last], rowptr, members.numel(), None, fields.settings)
