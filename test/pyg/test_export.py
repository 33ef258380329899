"""Exported programs, and compiled ahead of time: graphs of any size, also without edges and of one node."""

import pytest
import torch
from torch.export import Dim
from torch_geometric.nn import global_mean_pool

from torch_gic import GIC, GICConv, GICNet, VIGMMPool

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")
SIZES = [(20, 50), (33, 80), (40, 0), (1, 0), (1, 1), (2, 1)]  # nodes and edges


class Pooled(torch.nn.Module):
    """As users write it."""

    def __init__(self):
        super().__init__()
        self.conv1, self.pool, self.conv2 = GICConv(8, 16), VIGMMPool(16, 0.5), GICConv(16, 3)

    def forward(self, x, edge_index):
        x = self.conv1(x, edge_index).relu()
        x, edge_index, edge_weight, batch, _ = self.pool(x, edge_index)
        return global_mean_pool(self.conv2(x, edge_index, edge_weight).relu(), batch, size=1)


MODELS = {
    "layer": lambda: GICConv(8, 16),
    "scales": lambda: GICConv(8, 16, num_scales=3, max_neighbors=4),
    "GICNet": lambda: GICNet(8, 16, 2, 3, norm="batch_norm"),
    "GIC": lambda: GIC(8, 3, "C(8)-P(0.5)-C(8)-P"),
    "pooled": Pooled,
}


def graph(num_nodes, num_edges):
    generator = torch.Generator().manual_seed(num_nodes)
    return torch.randn(num_nodes, 8, generator=generator), torch.randint(num_nodes, (2, num_edges), generator=generator)


def exported(name, strict=False):
    torch.manual_seed(0)
    model = MODELS[name]()
    model(*graph(20, 50))
    shapes = {0: Dim.AUTO}, {1: Dim.AUTO}
    return model.eval(), torch.export.export(model, graph(20, 50), dynamic_shapes=shapes, strict=strict)


def agree(program, model):
    for size in SIZES:
        inputs = graph(*size)
        torch.testing.assert_close(program(*inputs), model(*inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_exported(name, strict):
    model, program = exported(name, strict)
    agree(program.module(), model)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_compiled_ahead_of_time(name, tmp_path):
    model, program = exported(name)
    package = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "model.pt2"))
    agree(torch._inductor.aoti_load_package(package), model)
