"""The import registers the layer and the network in GraphGym, with their settings."""

import pytest
import torch
from conftest import random_graph

pytest.importorskip("yacs")
pytest.importorskip("pytorch_lightning", exc_type=ImportError)
from torch_geometric.data import Batch
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg, set_cfg
from torch_geometric.graphgym.models.layer import new_layer_config

from torch_gic import GIC, GICConv
from torch_gic.contrib import graphgym

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _settings():
    set_cfg(cfg)
    yield
    set_cfg(cfg)


def batch():
    parts = [random_graph(seed=seed, dtype=torch.float32) for seed in range(3)]
    data = Batch.from_data_list(parts)
    data.y, data.split, data.train_mask = torch.arange(3), "train", torch.arange(36) % 2 == 0
    return data


def test_registered():
    assert register.layer_dict["gicconv"] is graphgym.GICConvLayer
    assert register.network_dict["gic"] is graphgym.GICNetwork
    assert cfg.gic.num_scales == 1


def test_layer():
    cfg.gic.num_scales, cfg.gic.max_neighbors, cfg.gic.hidden_channels = 2, 3, 0
    config = new_layer_config(5, 7, 1, has_act=False, has_bias=True, cfg=cfg)
    layer = graphgym.GICConvLayer(config).eval()
    assert (layer.model.num_scales, layer.model.max_neighbors, layer.model.hidden_channels) == (2, 3, None)
    data = batch()
    expected = layer.model(data.x, data.edge_index, data.edge_weight)
    assert isinstance(layer.model, GICConv)
    assert torch.equal(layer(data).x, expected)


def test_edge_features():
    data, cfg.gic.edge_dim, cfg.gic.architecture, cfg.dataset.task = batch(), 3, "C(4)-P", "graph"
    data.edge_attr = torch.randn(data.num_edges, 3)
    network = graphgym.GICNetwork(5, 2)
    network(data)
    out = network.eval()(data)[0]
    layer = graphgym.GICConvLayer(new_layer_config(5, 7, 1, has_act=False, has_bias=True, cfg=cfg)).eval()
    expected = layer.model(data.x, data.edge_index, data.edge_weight, edge_attr=data.edge_attr)
    assert torch.equal(layer(data.clone()).x, expected)
    data.edge_attr = -data.edge_attr
    assert not torch.equal(network(data)[0], out)


@pytest.mark.parametrize(("task", "architecture", "rows"), [("graph", "C(4)-P(0.5)-C(4)-P", 3), ("node", "C(4)-C(4)", 18)])
def test_network(task, architecture, rows):
    cfg.dataset.task, cfg.gic.architecture = task, architecture
    network, data = graphgym.GICNetwork(5, 2), batch()
    if task == "node":
        data.y = torch.arange(36) % 2
    assert isinstance(network.model, GIC)
    out, y = network(data)
    assert out.shape == (rows, 2)
    assert y.shape == (rows,)


def test_architecture_of_another_task():
    cfg.dataset.task = "node"
    with pytest.raises(ValueError, match=r"'cfg\.gic\.architecture' to end in a P for cfg\.dataset\.task: graph"):
        graphgym.GICNetwork(5, 2)(batch())


def test_unknown_data_set():
    assert graphgym.load_dataset("PyG", "Cora", "") is None
    with pytest.raises(ValueError, match=r"to be Letters for this format .got 'Cora'"):
        graphgym.load_dataset("torch_gic", "Cora", "")
