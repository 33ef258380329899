"""The GIC network, built from the paper's own notation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import Linear, global_max_pool
from torch_geometric.nn.resolver import activation_resolver
from torch_geometric.typing import SparseTensor

from torch_gic.fields import AnyFields
from torch_gic.kernels.sizes import number_of_graphs
from torch_gic.nn.aggr.gaussian_readout import GaussianReadout
from torch_gic.nn.aggr.lenient_batch_norm import make_norm
from torch_gic.nn.conv.gic_conv import GICConv
from torch_gic.nn.models.architecture import DEFAULT_ARCHITECTURE, PRINTED_SETTINGS, components_of, parse_architecture
from torch_gic.nn.models.first_graphs import first_graphs
from torch_gic.nn.models.node_level import NodeLevel
from torch_gic.nn.pool.vigmm_pool import VIGMMPool

READOUTS = ("all", "last")


class GIC(NodeLevel):
    r"""The network of the `"Gaussian-Induced Convolution for Graphs" <https://arxiv.org/abs/1811.04393>`_ paper, built from
    the paper's notation

    - ``C(64)`` is a :class:`GICConv` to 64 channels with normalisation and activation,
    - ``P(0.25)`` is a :class:`VIGMMPool` that keeps a quarter of the nodes,
    - ``P`` is the readout of each graph,
    - ``FC(256)`` is a linear layer with ReLU.

    A linear layer to :obj:`out_channels` follows. Without any ``P``, the network has one output per node. The default does not
    coarsen.

    After each convolution, normalised features are bounded softly at 10 deviations, and so is the readout. So no outlying
    feature or unusual graph can change the output without limit.

    If nodes have no features, add some first, such as by :class:`torch_geometric.transforms.Constant` or
    :class:`~torch_geometric.transforms.OneHotDegree`.

    Args:
        in_channels (int): Size of each node feature vector, or :obj:`-1` to take it from the first input.
        out_channels (int): Size of each output, such as the number of classes.
        architecture (str, optional): The layers. (default: :obj:`"C(64)-C(64)-C(64)-P-FC(64)"`)
        num_components (int or sequence, optional): The number of components :math:`C` per scale: one number for all
            convolutions, or one per convolution. A readout has that of the convolution before it. (default: :obj:`5`)
        readout (str, optional): The readout by the last ``P``. :obj:`"all"` concatenates the maximum, the mean and the
            Gaussian encoding (:class:`GaussianReadout`) of the nodes after each ``C``. :obj:`"last"` is the maximum after the
            last one, as printed. (default: :obj:`"all"`)
        norm (str or Callable, optional): The normalisation after each convolution, as PyG names them. With :obj:`None`, there
            is neither a normalisation nor a bound. (default: :obj:`"batch_norm"`)
        norm_kwargs (dict, optional): Its further arguments. (default: :obj:`None`)
        act (str or Callable, optional): The activation after it. (default: :obj:`"relu"`)
        act_kwargs (dict, optional): Its further arguments. (default: :obj:`None`)
        dropout (float, optional): Dropout probability before each linear layer at the end. (default: :obj:`0.0`)
        pool_kwargs (dict, optional): Further arguments of each :class:`VIGMMPool`. (default: :obj:`None`)
        **kwargs (optional): Further arguments of each :class:`GICConv`, such as :obj:`num_scales`, :obj:`max_neighbors` and
            :obj:`edge_dim`. A network with :obj:`edge_dim` cannot coarsen.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F_{in})`, edge indices :math:`(2, |\mathcal{E}|)`,
          edge weights :math:`(|\mathcal{E}|)` *(optional)*, batch vector :math:`(|\mathcal{V}|)` *(optional)*
        - **output:** :math:`(B, F_{out})`, one row per graph, or :math:`(|\mathcal{V}|, F_{out})` without any ``P``

    Example:
        >>> import torch
        >>> from torch_gic import GIC
        >>> model = GIC(8, 2, "C(16)-P(0.5)-C(16)-P-FC(16)")
        >>> edge_index = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
        >>> model(torch.randn(5, 8), edge_index, batch=torch.tensor([0, 0, 0, 1, 1])).shape
        torch.Size([2, 2])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        architecture: str = DEFAULT_ARCHITECTURE,
        num_components: int | Sequence[int] = 5,
        readout: str = "all",
        norm: str | Callable[..., Any] | None = "batch_norm",
        norm_kwargs: dict[str, Any] | None = None,
        act: str | Callable[..., Any] | None = "relu",
        act_kwargs: dict[str, Any] | None = None,
        dropout: float = 0.0,
        pool_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
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
        self.act = activation_resolver(act, **(act_kwargs or {})) if act is not None else torch.nn.Identity()
        self.graph_level = False
        self.layers = torch.nn.ModuleList()
        self.norms = torch.nn.ModuleList()  # one per layer
        self.readouts = torch.nn.ModuleList()  # one per convolution, or none
        self.classifier = torch.nn.ModuleList()
        channels, read = in_channels, 0
        layers = parse_architecture(architecture)
        # Layers may be wrapped by torch.compile, checkpointing or FSDP, so their kind is kept here.
        self.convolves = [kind == "C" for kind, size in layers if kind in "CP" and size is not None]
        self.edge_dim = kwargs.get("edge_dim")
        if self.edge_dim is not None and not all(self.convolves):
            raise ValueError(f"Expected no coarsening with 'edge_dim': coarse edges have no features (got {architecture!r})")
        components = iter(components_of(layers, num_components))
        reads = readout == "all" and any(size is None for _, size in layers)
        for kind, size in layers:
            if size is None:
                self.graph_level = True
                channels = read or channels
            elif kind == "P":
                self.layers.append(VIGMMPool(channels, size, **(pool_kwargs or {})))  # type: ignore[abstract]  # as below
                self.norms.append(torch.nn.Identity())
            elif kind == "C":
                count = next(components)
                # PyG marks methods abstract that layers may leave out
                self.layers.append(GICConv(channels, int(size), count, **kwargs))  # type: ignore[abstract]
                self.norms.append(make_norm(norm, int(size), norm_kwargs or {}))
                channels = int(size)
                if reads:
                    self.readouts.append(GaussianReadout(channels, count))
                    read += 3 * channels
            else:
                self.classifier.append(Linear(channels, int(size)))
                channels = int(size)
        self.classifier.append(Linear(channels, out_channels))

    @classmethod
    def as_printed(cls, in_channels: int, out_channels: int, **kwargs: Any) -> GIC:
        """Makes the network with the equations of the paper.

        It has seven scales, seven components and self-loops, but no projection, root weight or learnt scale. It coarsens to a
        quarter by the Laplacian, and reads out the maximum of the last level. One thing is not in the paper: batch
        normalisation stays, since stacked convolutions explode without it.
        """
        return cls(in_channels, out_channels, **(PRINTED_SETTINGS | kwargs))

    def reset_parameters(self) -> None:
        for module in (*self.layers, *self.norms, *self.readouts, *self.classifier):
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | SparseTensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        batch_size: int | None = None,
        edge_attr: Tensor | None = None,
        fields: AnyFields | None = None,
        clusters: Sequence[Tensor] | None = None,
        num_seeds: int | None = None,
    ) -> Tensor:
        r"""Forward pass.

        Args:
            x (torch.Tensor): The node features.
            edge_index (torch.Tensor or SparseTensor): The edges.
            edge_weight (torch.Tensor, optional): Their weights, finite and non-negative. (default: ones)
            batch (torch.Tensor, optional): The graph of each node. (default: all in one)
            batch_size (int, optional): The number of graphs :math:`B`, for batches that end in empty graphs.
                (default: inferred)
            edge_attr (torch.Tensor, optional): The edge features, if the network has :obj:`edge_dim`.
                (default: :obj:`None`)
            fields (Fields, optional): The fields of the input graphs, such as :obj:`data.fields` of
                :class:`~torch_gic.ReceptiveFields` with the settings of this network. (default: computed)
            clusters (sequence, optional): Those of each coarsening, by :class:`~torch_gic.PreCoarsen`. (default: computed)
            num_seeds (int, optional): The number of nodes to compute an output for: the first ones. Only what these outputs
                depend on is computed. Loaders that sample put their seeds first, and have their number as
                :obj:`data.batch_size`. Only for a network without any ``P``. (default: all)
        """
        count = len(self.layers) - sum(self.convolves)
        if clusters is not None and len(clusters) != count:
            raise ValueError(f"Expected 'clusters' to hold those of {count} coarsenings (got {len(clusters)})")
        if batch is None:
            batch = torch.zeros(x.size(0), dtype=torch.long, device=x.device)
            batch_size = 1 if batch_size is None else batch_size
        elif batch_size is None:
            batch_size = number_of_graphs(batch)
        if num_seeds is not None:
            if edge_attr is not None:
                raise NotImplementedError("'num_seeds' does not work with 'edge_attr'; leave out 'num_seeds'")
            return self._classify(self._convolve_seeds(x, edge_index, edge_weight, batch, fields, num_seeds))
        levels, remaining = [], iter(clusters or ())
        layers: Any = self.layers
        for layer, norm, convolves in zip(layers, self.norms, self.convolves, strict=True):
            if convolves:
                if fields is None and layer.explain:  # each layer has its own mask
                    x = layer(x, edge_index, edge_weight, batch, edge_attr=edge_attr)
                else:  # once for all convolutions up to the next coarsening
                    fields = self._fields(layer, x, edge_index, edge_weight, batch, fields=fields)
                    x = layer(x, edge_index, edge_attr=edge_attr, fields=fields)
                x = self._activate(norm, x)
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

    def init_from_data(self, data: Data | Iterable[Data], *, num_nodes: int = 4096, **kwargs: Any) -> None:
        """Sets the initial values of every convolution from data, by :meth:`GICConv.init_from_data`. The data of a convolution
        is the output of the layers before it for the first graphs.

        Args:
            data (Data or iterable): A graph, a dataset or a loader.
            num_nodes (int, optional): The number of nodes to use. The first graphs with this many nodes in all are used.
                (default: :obj:`4096`)
            **kwargs (optional): Arguments of :meth:`GICConv.init_from_data`, such as :obj:`num_iterations`.
        """
        batch = first_graphs(data, num_nodes).to(next(self.parameters()).device)

        def start(layer: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
            layer.init_from_data(*args, **options, **kwargs)

        convs = (layer for layer, convolves in zip(self.layers, self.convolves, strict=True) if convolves)
        hooks = [conv.register_forward_pre_hook(start, with_kwargs=True) for conv in convs]
        try:
            with torch.no_grad():
                graphs = batch.x, batch.edge_index, batch.edge_weight, batch.batch
                attr = None if self.edge_dim is None else batch.edge_attr
                self(*graphs, batch_size=batch.num_graphs, edge_attr=attr)
        finally:
            for hook in hooks:
                hook.remove()

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.in_channels}, {self.out_channels}, {self.architecture!r})"
