"""An embedded data set that only the variation of neighbourhoods can solve."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.utils import to_undirected

from torch_gic._checks import check_at_least

NUM_LEAVES = 8  # a centre
NARROW, WIDE = 0.5, 1.5  # typical size of a leaf's value
SPREAD = 0.2  # of the sizes around these two
BACKGROUND = 25.0  # values of centres are uniform in [-BACKGROUND, BACKGROUND]


class NeighborhoodVariation(InMemoryDataset):
    r"""Graphs whose two classes differ only in the variation of neighbourhoods: their spread and number of modes.

    Each graph is a ring of 6 to 10 centres with eight leaves each; every vertex holds one number. The leaves of a centre
    hold pairs :math:`\pm v`, so that **their sum is zero in both classes**, and over a whole graph half of the sizes
    :math:`|v|` are narrow (about 0.5) and half are wide (about 1.5) **in both classes**. What differs is how they are
    arranged:

    * class 0: every centre has narrow and wide leaves, four modes;
    * class 1: half of the centres have narrow leaves only, half wide leaves only, two modes each.

    Values of vertices, means and sums of neighbourhoods, degrees and sizes of graphs have the same distribution in both
    classes, so that one layer that adds or averages neighbours sees no difference at all. A second layer could in principle
    see what the first one left of the leaves; but that is their values added to that of their centre, drawn from a range
    many times as wide.

    Args:
        num_graphs (int, optional): The number of graphs, half of them in each class. (default: :obj:`600`)
        seed (int, optional): The seed of the generator. (default: :obj:`0`)
        transform (callable, optional): Applied to each graph on every access. (default: :obj:`None`)
        pre_transform (callable, optional): Applied to each graph once. (default: :obj:`None`)
    """

    def __init__(
        self,
        num_graphs: int = 600,
        seed: int = 0,
        transform: Callable[[Data], Data] | None = None,
        pre_transform: Callable[[Data], Data] | None = None,
    ) -> None:
        check_at_least(num_graphs, "num_graphs", 2)
        super().__init__(None, transform)
        generator = torch.Generator().manual_seed(seed)
        graphs = [make_graph(label=i % 2, generator=generator) for i in range(num_graphs)]
        if pre_transform is not None:
            graphs = [pre_transform(graph) for graph in graphs]
        self.data, self.slices = self.collate(graphs)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({len(self)})"


def make_graph(label: int, generator: torch.Generator) -> Data:
    """One graph: vertices ``0 .. c - 1`` are the centres, then come the leaves of centre 0, of centre 1, and so on."""
    num_centres = 2 * int(torch.randint(3, 6, (1,), generator=generator))
    shape = (num_centres, NUM_LEAVES // 2)
    if label == 0:
        wide = torch.arange(shape[1]).expand(shape) % 2 == 1
    else:
        wide = (torch.randperm(num_centres, generator=generator) % 2 == 1).unsqueeze(1).expand(shape)
    size = torch.where(wide, WIDE, NARROW) + SPREAD * torch.randn(shape, generator=generator)
    leaves = torch.cat([size, -size], dim=1)
    centres = BACKGROUND * (2 * torch.rand(num_centres, generator=generator) - 1)
    return Data(
        x=torch.cat([centres, leaves.flatten()]).unsqueeze(1),
        edge_index=_ring_with_leaves(num_centres),
        y=torch.tensor([label]),
    )


def _ring_with_leaves(num_centres: int) -> Tensor:
    centre = torch.arange(num_centres)
    ring = torch.stack([centre, (centre + 1) % num_centres])
    leaf = num_centres + torch.arange(num_centres * NUM_LEAVES)
    stars = torch.stack([centre.repeat_interleave(NUM_LEAVES), leaf])
    edge_index: Tensor = to_undirected(torch.cat([ring, stars], dim=1))
    return edge_index
