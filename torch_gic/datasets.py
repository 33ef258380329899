"""Line drawings of letters, made on the spot: a data set whose nodes are points of the plane."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.utils import coalesce, to_undirected

from torch_gic._checks import check_at_least

# Points (x, y) and strokes between them.
LETTERS: dict[str, tuple[list[tuple[float, float]], list[tuple[int, int]]]] = {
    "A": ([(0, 0), (0.25, 1), (0.5, 2), (0.75, 1), (1, 0)], [(0, 1), (1, 2), (2, 3), (3, 4), (1, 3)]),
    "E": ([(1, 0), (0, 0), (0, 1), (0, 2), (1, 2), (0.8, 1)], [(0, 1), (1, 2), (2, 3), (3, 4), (2, 5)]),
    "F": ([(0, 0), (0, 1), (0, 2), (1, 2), (0.8, 1)], [(0, 1), (1, 2), (2, 3), (1, 4)]),
    "H": ([(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)], [(0, 1), (1, 2), (3, 4), (4, 5), (1, 4)]),
    "K": ([(0, 0), (0, 1), (0, 2), (1, 0), (1, 2)], [(0, 1), (1, 2), (1, 3), (1, 4)]),
    "L": ([(0, 2), (0, 0), (1, 0)], [(0, 1), (1, 2)]),
    "M": ([(0, 0), (0, 2), (0.5, 1), (1, 2), (1, 0)], [(0, 1), (1, 2), (2, 3), (3, 4)]),
    "N": ([(0, 0), (0, 2), (1, 0), (1, 2)], [(0, 1), (1, 2), (2, 3)]),
    "T": ([(0, 2), (0.5, 2), (1, 2), (0.5, 0)], [(0, 1), (1, 2), (1, 3)]),
    "V": ([(0, 2), (0.5, 0), (1, 2)], [(0, 1), (1, 2)]),
    "W": ([(0, 2), (0.25, 0), (0.5, 1), (0.75, 0), (1, 2)], [(0, 1), (1, 2), (2, 3), (3, 4)]),
    "X": ([(0, 0), (0.5, 1), (1, 2), (0, 2), (1, 0)], [(0, 1), (1, 2), (3, 1), (1, 4)]),
    "Y": ([(0, 2), (0.5, 1), (1, 2), (0.5, 0)], [(0, 1), (1, 2), (1, 3)]),
    "Z": ([(0, 2), (1, 2), (0, 0), (1, 0)], [(0, 1), (1, 2), (2, 3)]),
}


class Letters(InMemoryDataset):
    r"""Distorted line drawings of capital letters, as graphs. It is like the Letter sets of Riesen and Bunke (2008), but needs
    no download.

    Nodes are points, and their features are their position :math:`(x, y)`. Edges are strokes. All points of a drawing are
    moved at random. Some drawings lose a stroke, and some have a wrong one.

    Args:
        num_graphs (int, optional): The number of drawings. All 14 letters are equally frequent. (default: :obj:`1400`)
        noise (float, optional): The standard deviation of the points, in widths of a letter. (default: :obj:`0.35`)
        faults (float, optional): The probability of a lost stroke, and that of a wrong one. (default: :obj:`0.8`)
        seed (int, optional): The seed of the generator. (default: :obj:`0`)
        transform (callable, optional): Applied to each graph on every access. (default: :obj:`None`)
        pre_transform (callable, optional): Applied to each graph once. (default: :obj:`None`)

    Example:
        >>> from torch_gic.datasets import Letters
        >>> Letters(28, faults=0)[0]
        Data(x=[5, 2], edge_index=[2, 10], y=[1])
    """

    def __init__(
        self,
        num_graphs: int = 1400,
        noise: float = 0.35,
        faults: float = 0.8,
        seed: int = 0,
        transform: Callable[[Data], Data] | None = None,
        pre_transform: Callable[[Data], Data] | None = None,
    ) -> None:
        check_at_least(num_graphs, "num_graphs", 1)
        if not noise >= 0:
            raise ValueError(f"Expected 'noise' to be at least 0 (got {noise})")
        if not 0 <= faults <= 1:
            raise ValueError(f"Expected 'faults' to be in [0, 1] (got {faults})")
        super().__init__(None, transform)
        generator = torch.Generator().manual_seed(seed)
        graphs = [draw_letter(number % len(LETTERS), noise, faults, generator) for number in range(num_graphs)]
        if pre_transform is not None:
            graphs = [pre_transform(graph) for graph in graphs]
        self.data, self.slices = self.collate(graphs)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({len(self)})"


def draw_letter(label: int, noise: float, faults: float, generator: torch.Generator) -> Data:
    """One drawing of the letter with this number in :obj:`LETTERS`."""
    points, strokes = list(LETTERS.values())[label]
    x = torch.tensor(points, dtype=torch.float)
    x = x + noise * torch.randn(x.shape, generator=generator)
    edges = torch.tensor(strokes)
    lost, wrong = (torch.rand(2, generator=generator) < faults).tolist()
    if lost:
        edges = edges[torch.arange(len(edges)) != int(torch.randint(len(edges), (1,), generator=generator))]
    if wrong:
        edges = torch.cat([edges, torch.randperm(len(x), generator=generator)[:2].unsqueeze(0)])
    edge_index = coalesce(to_undirected(edges.t(), num_nodes=len(x)), num_nodes=len(x))
    return Data(x=x, edge_index=edge_index, y=torch.tensor([label]))
