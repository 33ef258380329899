"""The GIC network, built from the paper's own notation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import BatchNorm, Linear, global_max_pool
from torch_geometric.typing import SparseTensor

from torch_gic._checks import check_at_least
from torch_gic.nn.architecture import DEFAULT, PRINTED, components_of, parse_architecture
from torch_gic.nn.gaussian_readout import GaussianReadout
from torch_gic.nn.gic_conv import GICConv
from torch_gic.nn.vigmm_pool import VIGMMPool
from torch_gic.ops import split_fields, trim_fields

READOUTS = ("all", "last")
BOUND = 1e15  # of what is normalised: its square is a number in float32


class GIC(torch.nn.Module):
    r"""The network of the `"Gaussian-Induced Convolution for Graphs" <https://arxiv.org/abs/1811.04393>`_ paper, from its
    own notation: ``C(64)`` is a :class:`GICConv` to 64 channels with batch normalisation and ReLU, ``P(0.25)`` a
    :class:`VIGMMPool`, ``P`` the readout of each graph, ``FC(256)`` a linear layer with ReLU. A linear layer to
    :obj:`out_channels` follows. Without any ``P`` the network gives an output for each vertex.

    The paper names no normalisation; without it (:obj:`batch_norm=False`) stacked convolutions explode. It also reads out
    the last level alone, coarsens by the Laplacian, and filters nothing but fields: ``GIC(..., GIC.PRINTED,
    kernel="laplacian", readout="last", root_weight=False)`` does that. By default, coarsening is gentler and every level is
    read out.

    Args:
        in_channels (int): Size of each vertex attribute vector, or :obj:`-1` to take it from the first input.
        out_channels (int): Size of each output, such as the number of classes.
        architecture (str, optional): The layers. (default: :obj:`"C(64)-P(0.5)-C(128)-P(0.5)-C(256)-P-FC(256)"`)
        num_scales (int, optional): The number of scales :math:`K` of each convolution. (default: :obj:`7`)
        num_components (int or sequence, optional): The number of components :math:`C` of each scale, one for all convolutions
            or one for each. Readouts have those of the convolution before them. (default: :obj:`7`)
        add_self_loops (bool, optional): Whether each vertex is in its own field too, as in
            :class:`~torch_gic.ReceptiveFields`. The benchmark leaves them out of its undirected graphs; in directed
            ones, vertices that no edge enters would then be in no field. (default: :obj:`True`)
        max_neighbors (int, optional): The largest number of field members a vertex. (default: :obj:`None`)
        kernel (str, optional): The kernel of the coarsening, :obj:`"cut"` or :obj:`"laplacian"`.
            (default: :obj:`"cut"`)
        readout (str, optional): What the last ``P`` makes of a graph. :obj:`"all"`: the maximum, the mean and the Gaussian
            encoding (:class:`GaussianReadout`) of its vertices after each ``C``, side by side. :obj:`"last"`: the maximum
            after the last one, as printed. (default: :obj:`"all"`)
        root_weight (bool, optional): Whether each convolution adds the transformed vertex itself (:class:`GICConv`).
            (default: :obj:`True`)
        batch_norm (bool, optional): Whether to normalise after each convolution. (default: :obj:`True`)
        dropout (float, optional): Dropout probability before each linear layer at the end. (default: :obj:`0.0`)

    Shapes:
        - **input:** attributes :math:`(|\mathcal{V}|, F_{in})`, edge indices :math:`(2, |\mathcal{E}|)`,
          edge weights :math:`(|\mathcal{E}|)` *(optional)*, batch vector :math:`(|\mathcal{V}|)` *(optional)*
        - **output:** :math:`(B, F_{out})`, a row a graph, or :math:`(|\mathcal{V}|, F_{out})` without any ``P``

    Example:
        >>> import torch
        >>> from torch_gic import GIC
        >>> model = GIC(8, 2, "C(16)-P(0.5)-C(16)-P-FC(16)", num_scales=2, num_components=3)
        >>> edge_index = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
        >>> model(torch.randn(5, 8), edge_index, batch=torch.tensor([0, 0, 0, 1, 1])).shape
        torch.Size([2, 2])
    """

    PRINTED = PRINTED

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        architecture: str = DEFAULT,
        num_scales: int = 7,
        num_components: int | Sequence[int] = 7,
        add_self_loops: bool = True,
        max_neighbors: int | None = None,
        kernel: str = "cut",
        readout: str = "all",
        root_weight: bool = True,
        batch_norm: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not 0 <= dropout < 1:
            raise ValueError(f"Expected 'dropout' to be in [0, 1) (got {dropout})")
        if readout not in READOUTS:
            raise ValueError(f"Expected 'readout' to be one of {READOUTS} (got {readout!r})")
        self.architecture = architecture
        self.readout = readout
        self.dropout = dropout
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.graph_level = False
        self.layers = torch.nn.ModuleList()
        self.norms = torch.nn.ModuleList()  # one a layer
        self.readouts = torch.nn.ModuleList()  # one a convolution, or none
        self.classifier = torch.nn.ModuleList()
        channels, read = in_channels, 0
        layers = parse_architecture(architecture)
        components = iter(components_of(layers, num_components))
        reads = readout == "all" and any(size is None for _, size in layers)
        for kind, size in layers:
            if size is None:
                self.graph_level = True
                channels = read or channels
            elif kind == "P":
                self.layers.append(VIGMMPool(channels, size, kernel))
                self.norms.append(torch.nn.Identity())
            elif kind == "C":
                count = next(components)
                convolution = GICConv(  # type: ignore[abstract]  # PyG marks methods abstract that layers may leave out
                    channels,
                    int(size),
                    num_scales,
                    count,
                    add_self_loops,
                    max_neighbors,
                    root_weight=root_weight,
                )
                self.layers.append(convolution)
                self.norms.append(BatchNorm(int(size), allow_single_element=True) if batch_norm else torch.nn.Identity())
                channels = int(size)
                if reads:
                    self.readouts.append(GaussianReadout(channels, count))
                    read += 3 * channels
            else:
                self.classifier.append(Linear(channels, int(size)))
                channels = int(size)
        self.classifier.append(Linear(channels, out_channels))

    def reset_parameters(self) -> None:
        for module in (*self.layers, *self.norms, *self.readouts, *self.classifier):
            if not isinstance(module, torch.nn.Identity):
                module.reset_parameters()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | SparseTensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        batch_size: int | None = None,
        fields: tuple[Tensor, Tensor] | None = None,
        clusters: Sequence[Tensor] | None = None,
        num_seeds: int | None = None,
    ) -> Tensor:
        r"""Forward pass.

        Args:
            x (torch.Tensor): The vertex attributes.
            edge_index (torch.Tensor or SparseTensor): The edges.
            edge_weight (torch.Tensor, optional): Their weights, finite and non-negative. (default: ones)
            batch (torch.Tensor, optional): The graph of each vertex. (default: all in one)
            batch_size (int, optional): The number of graphs :math:`B`, for batches that end in empty graphs.
                (default: inferred)
            fields (tuple, optional): ``(field_index, field_weight)`` of the input graphs, from
                :class:`~torch_gic.ReceptiveFields` with the :obj:`add_self_loops` of this network. (default: computed)
            clusters (sequence, optional): The clusters of each coarsening, from :class:`~torch_gic.PreCoarsen`.
                (default: selected)
            num_seeds (int, optional): Of a network without any ``P``: computes the output of the first so many vertices,
                and only what it depends on. Loaders that sample put their seeds first and tell their number as
                :obj:`data.batch_size`. (default: all)
        """
        count = sum(not isinstance(layer, GICConv) for layer in self.layers)
        if clusters is not None and len(clusters) != count:
            raise ValueError(f"Expected 'clusters' to hold those of {count} coarsenings (got {len(clusters)})")
        if batch is None:
            batch = torch.zeros(x.size(0), dtype=torch.long, device=x.device)
            batch_size = 1 if batch_size is None else batch_size
        elif batch_size is None:
            highest: Any = batch.max().item() if batch.numel() > 0 else -1  # an int, or what stands for one in an export
            batch_size = highest + 1
            if torch.compiler.is_exporting():
                torch._check(highest >= 0)  # a batch without any graph is not exported
        if num_seeds is not None:
            return self._classify(self._convolve_seeds(x, edge_index, edge_weight, batch, fields, num_seeds))
        levels, remaining = [], iter(clusters or ())
        for layer, norm in zip(self.layers, self.norms, strict=True):
            if isinstance(layer, GICConv):
                if fields is None:  # once for all convolutions up to the next coarsening
                    fields = layer.fields(x, edge_index, edge_weight, batch)
                x = _normalise(norm, layer(x, edge_index, fields=fields))
                levels.append((x, batch))
            else:
                given = {} if clusters is None else {"cluster": next(remaining)}
                x, edge_index, edge_weight, batch, _ = layer(x, edge_index, edge_weight, batch, **given)
                fields = None
        if self.readouts:
            parts = [read(x, batch, batch_size) for read, (x, batch) in zip(self.readouts, levels, strict=True)]
            x = torch.cat(parts, dim=1)
        elif self.graph_level:
            x = global_max_pool(x, batch, batch_size)
        return self._classify(x)

    def _convolve_seeds(
        self,
        x: Tensor,
        edge_index: Tensor | SparseTensor,
        edge_weight: Tensor | None,
        batch: Tensor,
        fields: tuple[Tensor, Tensor] | None,
        num_seeds: int,
    ) -> Tensor:
        self._check_vertex_level("num_seeds")
        check_at_least(num_seeds, "num_seeds", 1)
        if num_seeds > x.size(0):
            raise ValueError(f"Expected 'num_seeds' to be at most the {x.size(0)} vertices (got {num_seeds})")
        fields = self._fields(x, edge_index, edge_weight, batch) if fields is None else fields
        steps = trim_fields(fields, num_seeds, len(self.layers))
        for layer, norm, (count, part) in zip(self.layers, self.norms, steps, strict=True):
            x = _normalise(norm, layer((x, x[:count]), edge_index, fields=part))
        return x[:num_seeds]

    @torch.no_grad()
    def inference(
        self,
        x: Tensor,
        edge_index: Tensor | SparseTensor,
        edge_weight: Tensor | None = None,
        *,
        fields: tuple[Tensor, Tensor] | None = None,
        batch_size: int = 4096,
    ) -> Tensor:
        r"""The output of every vertex of a large graph, by a network without any ``P``: that of :meth:`forward` in evaluation
        mode, but layer by layer over batches of vertices.

        Memory is what the fields and the attributes before and after one layer take, and the encoding of one batch. Only a
        batch is taken to the device of the model; the graph and the result stay where :obj:`x` is.

        Args:
            x (torch.Tensor): The vertex attributes.
            edge_index (torch.Tensor or SparseTensor): The edges.
            edge_weight (torch.Tensor, optional): Their weights, finite and non-negative. (default: ones)
            fields (tuple, optional): ``(field_index, field_weight)`` of the graph. (default: computed; bound them by
                :obj:`max_neighbors`)
            batch_size (int, optional): The number of vertices at a time. (default: :obj:`4096`)
        """
        self._check_vertex_level("inference")
        check_at_least(batch_size, "batch_size", 1)
        device, training = next(self.parameters()).device, self.training
        fields = self._fields(x, edge_index, edge_weight) if fields is None else fields
        self.eval()
        try:
            for layer, norm in zip(self.layers, self.norms, strict=True):
                parts = []
                for start, end, members, (index, weight) in split_fields(fields, x.size(0), batch_size):
                    pair = x[members].to(device), x[start:end].to(device)
                    out = layer(pair, edge_index, fields=(index.to(device), weight.to(device)))
                    parts.append(_normalise(norm, out).to(x.device))
                x = torch.cat(parts)
            return torch.cat([self._classify(part.to(device)).to(x.device) for part in x.split(batch_size)])
        finally:
            self.train(training)

    def _check_vertex_level(self, name: str) -> None:
        if self.graph_level:  # an architecture that coarsens ends in a P too
            raise ValueError(f"Expected {name} of a network without any P, which has outputs for vertices (got {self!r})")

    def _fields(self, x: Tensor, *graph: Any) -> tuple[Tensor, Tensor]:
        """Fields for all convolutions of a network without any ``P``, which may be none."""
        for layer in self.layers:
            if isinstance(layer, GICConv):
                return layer.fields(x, *graph)
        return torch.empty(2, 0, dtype=torch.long, device=x.device), x.new_empty(0, 1)

    def _classify(self, x: Tensor) -> Tensor:
        for linear in self.classifier[:-1]:
            x = linear(F.dropout(x, self.dropout, self.training)).relu()
        return self.classifier[-1](F.dropout(x, self.dropout, self.training))

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.in_channels}, {self.out_channels}, {self.architecture!r})"


def _normalise(norm: torch.nn.Module, x: Tensor) -> Tensor:
    if isinstance(norm, BatchNorm) and not norm.training:
        norm = norm.module  # which does not ask, as training must, whether there is more than one vertex
    bound = min(BOUND, torch.finfo(x.dtype).max)
    return norm(x.clamp(-bound, bound)).relu()
