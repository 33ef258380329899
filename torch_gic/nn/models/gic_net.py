"""Gaussian-induced convolutions as one of PyG's basic networks."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn.models.basic_gnn import BasicGNN
from torch_geometric.typing import SparseTensor

from torch_gic.fields import AnyFields, Fields, split_fields, trim_fields
from torch_gic.nn.conv.gic_conv import GICConv


class GICNet(BasicGNN):
    r"""A stack of :class:`~torch_gic.GICConv` layers. It takes the place of :class:`~torch_geometric.nn.models.GIN`,
    :class:`~torch_geometric.nn.models.GCN` and PyG's other basic networks, with their arguments.

    The convolutions share one set of fields. :class:`~torch_gic.GIC` is the paper's network, which can coarsen and read out
    graphs.

    Args:
        in_channels (int or tuple): Size of each node feature vector, or :obj:`-1` to take it from the first input. A tuple
            has the sizes of sources and of targets, for :func:`~torch_geometric.nn.to_hetero`.
        hidden_channels (int): Size of each hidden vector.
        num_layers (int): The number of convolutions.
        out_channels (int, optional): Size of each output. (default: :obj:`hidden_channels`)
        dropout (float, optional): Dropout probability. (default: :obj:`0.0`)
        act (str or Callable, optional): The activation. (default: :obj:`"relu"`)
        act_first (bool, optional): Whether it comes before the normalisation. (default: :obj:`False`)
        act_kwargs (dict, optional): Its further arguments. (default: :obj:`None`)
        norm (str or Callable, optional): The normalisation after each convolution. (default: :obj:`None`)
        norm_kwargs (dict, optional): Its further arguments. (default: :obj:`None`)
        jk (str, optional): How the outputs of all layers are joined: :obj:`None`, :obj:`"last"`, :obj:`"cat"`,
            :obj:`"max"` or :obj:`"lstm"`. (default: :obj:`None`)
        **kwargs (optional): Further arguments of each :class:`~torch_gic.GICConv`.

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F_{in})`, edge indices :math:`(2, |\mathcal{E}|)`,
          edge weights :math:`(|\mathcal{E}|)` *(optional)*
        - **output:** :math:`(|\mathcal{V}|, F_{out})`

    Example:
        >>> import torch
        >>> from torch_gic import GICNet
        >>> model = GICNet(8, 16, num_layers=2, out_channels=3)  # was GIN(8, 16, num_layers=2, out_channels=3)
        >>> model(torch.randn(3, 8), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
        torch.Size([3, 3])
    """

    in_channels: Any  # an int or a tuple
    supports_edge_weight = True  # type: ignore[misc]  # PyG declares them final, for TorchScript
    supports_edge_attr = True  # type: ignore[misc]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._trim: torch.nn.Module = _NoTrim()  # type: ignore[assignment]

    def init_conv(self, in_channels: int | tuple[int, int], out_channels: int, **kwargs: Any) -> GICConv:
        if isinstance(in_channels, tuple | list):
            in_channels = in_channels[0], in_channels[1]
        # PyG marks methods abstract that layers may leave out
        return GICConv(in_channels, out_channels, **kwargs)  # type: ignore[abstract]

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | SparseTensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        batch_size: int | None = None,
        num_sampled_nodes_per_hop: list[int] | None = None,
        num_sampled_edges_per_hop: list[int] | None = None,
        fields: AnyFields | None = None,
    ) -> Tensor:
        r"""Forward pass.

        Args:
            x (torch.Tensor): The node features.
            edge_index (torch.Tensor or SparseTensor): The edges.
            edge_weight (torch.Tensor, optional): Their weights, finite and non-negative. (default: ones)
            edge_attr (torch.Tensor, optional): The edge features, if the layers have :obj:`edge_dim`. (default: :obj:`None`)
            batch (torch.Tensor, optional): The graph of each node, for normalisations that ask for it.
            batch_size (int, optional): The number of graphs. (default: computed)
            num_sampled_nodes_per_hop (list, optional): Those of :class:`~torch_geometric.loader.NeighborLoader`. Then only
                the outputs of the seeds are computed, and what they depend on. A sample does not tell how many edges its
                nodes have in the whole graph, so pass :obj:`fields` made with :func:`~torch_gic.walk_counts`.
            num_sampled_edges_per_hop (list, optional): Not needed.
            fields (Fields, optional): The fields of the graph, or of the sample. (default: computed)
        """
        if _is_traced(x):  # to_hetero traces the forward pass of BasicGNN, in which each layer computes its own fields
            return super().forward(x, edge_index, edge_weight, edge_attr, batch, batch_size, num_sampled_nodes_per_hop)
        if isinstance(self.in_channels, tuple | list) or (fields is None and self.convs[0].explain):
            return super().forward(x, edge_index, edge_weight, edge_attr, batch, batch_size, num_sampled_nodes_per_hop)
        if edge_attr is not None and num_sampled_nodes_per_hop is not None:
            raise NotImplementedError("Sampled layers are not trimmed with 'edge_attr'; leave out 'num_sampled_nodes_per_hop'")
        if num_sampled_nodes_per_hop is not None and fields is None:
            warnings.warn(
                "GICNet: fields of a sample, without the edges that were not sampled, weigh nodes differently from those of"
                " the whole graph; pass 'fields' made with 'walk_count' (see walk_counts)",
                stacklevel=2,
            )
        whole = self._fields(x, edge_index, edge_weight, fields)
        parts = [whole] * self.num_layers
        if num_sampled_nodes_per_hop is not None:
            parts = trim_fields(whole, int(num_sampled_nodes_per_hop[0]), self.num_layers)
            x, batch = x[: parts[0].num_sources], None if batch is None else batch[: parts[0].num_sources]
        outputs: list[Tensor] = []
        for layer, (conv, part) in enumerate(zip(self.convs, parts, strict=True)):
            given = (x, edge_index) if part is whole else ((x, x[: part.num_nodes]), None)
            x = conv(*given, edge_attr=edge_attr, fields=part)
            batch = None if batch is None else batch[: part.num_nodes]
            x = self._activate(layer, x, batch, batch_size)
            outputs.append(x)
        return self._join([output[: x.size(0)] for output in outputs])

    def _fields(self, x: Tensor, edge_index: Any, edge_weight: Tensor | None, fields: AnyFields | None) -> Fields:
        conv: Any = self.convs[0]
        return conv.fields(x, edge_index, edge_weight) if fields is None else conv.checked(fields, x, edge_index)

    def _activate(self, layer: int, x: Tensor, batch: Tensor | None = None, batch_size: int | None = None) -> Tensor:
        """Normalisation, activation and dropout after a layer. The last layer has none, unless layers are joined."""
        if layer == self.num_layers - 1 and self.jk_mode is None:
            return x
        norm = self.norms[layer]
        if self.act is not None and self.act_first:
            x = self.act(x)
        x = norm(x, batch, batch_size) if self.supports_norm_batch else norm(x)
        if self.act is not None and not self.act_first:
            x = self.act(x)
        return self.dropout(x)

    def _join(self, outputs: list[Tensor]) -> Tensor:
        x = self.jk(outputs) if hasattr(self, "jk") else outputs[-1]
        return self.lin(x) if hasattr(self, "lin") else x

    @torch.no_grad()
    def inference(
        self,
        loader: NeighborLoader,
        device: str | torch.device | None = None,
        embedding_device: str | torch.device = "cpu",
        progress_bar: bool = False,
        cache: bool = False,
    ) -> Tensor:
        r"""Computes the output of every node of a large graph, layer by layer over batches of nodes.

        The result is that of :meth:`forward` on the whole graph. The loader gives the graph and the size of batches. Nothing
        is sampled, since the members of each field are known. Edge weights are :obj:`loader.data.edge_weight`, or ones.

        Args:
            loader (torch_geometric.loader.NeighborLoader): A loader of all nodes of a graph.
            device (torch.device, optional): The device that computes batches. (default: that of the graph)
            embedding_device (torch.device, optional): The device that keeps the outputs of layers. (default: :obj:`"cpu"`)
            progress_bar (bool, optional): Whether to show progress. (default: :obj:`False`)
            cache (bool, optional): Changes nothing: fields are computed once anyway. (default: :obj:`False`)
        """
        if self.training:
            raise ValueError("Expected a network in evaluation mode: call .eval() first")
        if isinstance(self.in_channels, tuple | list):
            raise NotImplementedError("There is no inference by batches for several node types")
        first: Any = self.convs[0]
        if first.edge_dim is not None:
            raise NotImplementedError("There is no inference by batches with edge features; call the network on the graph")
        if self.supports_norm_batch:
            raise NotImplementedError(
                "There is no inference by batches with a normalisation over graphs, which sees all nodes"
            )
        data: Any = loader.data
        num_outputs = len(loader.dataset)  # type: ignore[arg-type]
        if num_outputs != data.num_nodes:
            raise ValueError(f"Expected a loader of all {data.num_nodes} nodes (got one of {num_outputs})")
        edges = data.adj_t if data.edge_index is None else data.edge_index
        x = data.x.to(embedding_device)
        whole = self._fields(data.x, edges, data.edge_weight, None).to(embedding_device)
        layers: Any = range(self.num_layers)
        if progress_bar:
            from tqdm import tqdm  # type: ignore[import-untyped]

            layers = tqdm(layers, "Inference")
        outputs = []
        for layer in layers:
            parts = (part.to(embedding_device) for part in self._by_batches(layer, x, whole, loader.batch_size or 1, device))
            x = torch.cat(list(parts))
            outputs.append(x)
        pieces = zip(*(output.split(loader.batch_size or 1) for output in outputs), strict=True)
        return torch.cat([self._join([part.to(device) for part in piece]).to(embedding_device) for piece in pieces])

    def _by_batches(self, layer: int, x: Tensor, whole: Fields, batch_size: int, device: Any) -> Iterator[Tensor]:
        for start, end, members, part in split_fields(whole, batch_size):
            pair = x[members].to(device), x[start:end].to(device)
            yield self._activate(layer, self.convs[layer](pair, None, fields=part.to(device)))

    def inference_per_layer(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raises an error: the edges of a batch do not tell how many edges its nodes have in the whole graph."""
        raise NotImplementedError("Use GICNet.inference, or convs[layer](x, edge_index, fields=...) with fields of your own")


def _is_traced(x: object) -> bool:
    return isinstance(x, torch.fx.Proxy)


class _NoTrim(torch.nn.Module):
    """Replaces PyG's trimming of edges, which would change the fields."""

    def forward(
        self, layer: int, nodes: Any, edges: Any, x: Tensor, edge_index: Tensor, value: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        if any(part is not None for part in (nodes if isinstance(nodes, tuple) else (nodes,))):  # a tuple: sources and targets
            raise NotImplementedError("Sampled layers are not trimmed between two sets of nodes, nor when explained")
        return x, edge_index, value
