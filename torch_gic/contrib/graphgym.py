"""The layer and the network in PyG's GraphGym. Importing this module registers them.

In a configuration, ``gnn.layer_type: gicconv`` puts :class:`~torch_gic.GICConv` into GraphGym's own network.
``model.type: gic`` is the whole network :class:`~torch_gic.GIC`. Their settings are in the section ``gic``. GraphGym needs
yacs and pytorch-lightning.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.loader import set_dataset_attr
from torch_geometric.graphgym.models.layer import LayerConfig
from torch_geometric.graphgym.register import register_config, register_layer, register_loader, register_network
from yacs.config import CfgNode

from torch_gic import GIC, GICConv
from torch_gic.datasets import Letters


@register_config("gic")
def set_gic_config(config: Any) -> None:
    """The section ``gic``: arguments of :class:`~torch_gic.GICConv`, and the architecture of :class:`~torch_gic.GIC`."""
    layer = {"num_components": 5, "num_scales": 1, "hidden_channels": 16, "max_neighbors": 0, "edge_dim": 0}
    config.gic = CfgNode({**layer, "architecture": "C(64)-P(0.5)-C(64)-P"})


def _settings() -> dict[str, Any]:
    return {
        "num_components": cfg.gic.num_components,
        "num_scales": cfg.gic.num_scales,
        "hidden_channels": cfg.gic.hidden_channels or None,  # a configuration keeps the types of its values: 0 for None
        "max_neighbors": cfg.gic.max_neighbors or None,
        "edge_dim": cfg.gic.edge_dim or None,  # cfg.dataset.edge_dim is never 0
    }


def _edge_attr(batch: Any) -> Tensor | None:
    """The edge features, if ``cfg.gic.edge_dim`` asks for them. Any data set may have some."""
    return batch.edge_attr if cfg.gic.edge_dim else None


@register_layer("gicconv")
class GICConvLayer(torch.nn.Module):
    """:class:`~torch_gic.GICConv` with the settings of ``cfg.gic``. Weights are ``batch.edge_weight``, if there are any."""

    def __init__(self, layer_config: LayerConfig, **kwargs: Any) -> None:
        super().__init__()
        self.model = GICConv(  # type: ignore[abstract]  # of methods that layers may leave out
            layer_config.dim_in, layer_config.dim_out, bias=layer_config.has_bias, **_settings()
        )

    def forward(self, batch: Any) -> Any:
        batch.x = self.model(batch.x, batch.edge_index, batch.edge_weight, batch.batch, edge_attr=_edge_attr(batch))
        return batch


@register_network("gic")
class GICNetwork(torch.nn.Module):
    """:class:`~torch_gic.GIC` of the architecture ``cfg.gic.architecture``, with ``cfg.gnn.dropout``."""

    def __init__(self, dim_in: int, dim_out: int, **kwargs: Any) -> None:
        super().__init__()
        self.model = GIC(dim_in, dim_out, cfg.gic.architecture, dropout=cfg.gnn.dropout, **_settings())

    def forward(self, batch: Any) -> tuple[Tensor, Tensor]:
        """The predictions and what is true: of graphs, or of the nodes of this split."""
        if cfg.dataset.task not in ("graph", "node") or self.model.graph_level != (cfg.dataset.task == "graph"):
            raise ValueError(
                "Expected 'cfg.gic.architecture' to end in a P for cfg.dataset.task: graph, and to have none for"
                f" cfg.dataset.task: node (got {self.model.architecture!r} and {cfg.dataset.task!r})"
            )
        graphs = batch.num_graphs if isinstance(batch, Batch) else 1
        edges = batch.edge_index, batch.edge_weight
        out = self.model(batch.x, *edges, batch.batch, batch_size=graphs, edge_attr=_edge_attr(batch))
        if self.model.graph_level:
            return out, batch.y
        mask = batch[f"{batch.split}_mask"]
        return out[mask], batch.y[mask]


@register_loader("torch_gic")
def load_dataset(format: str, name: str, dataset_dir: str) -> Letters | None:
    """The embedded data set, split at random: ``dataset.format: torch_gic``, ``dataset.name: Letters``."""
    if format != "torch_gic":
        return None
    if name != "Letters":
        raise ValueError(f"Expected 'cfg.dataset.name' to be Letters for this format (got {name!r})")
    dataset = Letters()
    order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(cfg.seed))
    ends = [round(sum(cfg.dataset.split[: part + 1]) * len(dataset)) for part in range(3)]
    for part, index in zip(("train", "val", "test"), order.tensor_split(ends[:2]), strict=True):
        set_dataset_attr(dataset, f"{part}_graph_index", index, index.numel())
    return dataset


if "gic" not in cfg:  # GraphGym has made its configuration before this module came
    set_gic_config(cfg)
