"""Settings and input that VIGMMPool refuses."""

import pytest
import torch
from conftest import random_graph

from torch_gic import VIGMMPool


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (ValueError, "'ratio' to be in .0, 1.*1.5", {"ratio": 1.5}),
        (ValueError, "'ratio' to be in .0, 1.*0.0", {"ratio": 0.0}),
        (ValueError, "'ratio' to be in .0, 1.*nan", {"ratio": float("nan")}),
        (ValueError, "'ratio' to be in .0, 1.*or a number of clusters as an int.*0", {"ratio": 0}),
        (TypeError, "'ratio' to be a float or an int.*bool", {"ratio": True}),
        (TypeError, "'ratio' to be a float or an int.*str", {"ratio": "0.5"}),
        (ValueError, "'affinity' to be one of.*'rbf'", {"affinity": "rbf"}),
        (ValueError, "'beta' to be positive.*-1", {"beta": -1.0}),
        (ValueError, "'num_iterations' to be at least 1", {"num_iterations": 0}),
        (ValueError, "'in_channels' to be at least 1", {"in_channels": 0}),
        (ValueError, "'soft' to be True or None for affinity 'laplacian'", {"affinity": "laplacian", "soft": False}),
        (ValueError, "'reduce' to be one of.*'min'", {"reduce": "min"}),
        (TypeError, "unexpected keyword argument 'aggr'", {"aggr": "sum"}),
    ],
)
def test_bad_settings(error, message, arguments):
    with pytest.raises(error, match=message):
        VIGMMPool(**{"in_channels": 5} | arguments)


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (ValueError, r"'x' to have shape \[num_nodes, 5\].*\[12, 4\]", {"x": torch.randn(12, 4)}),
        (ValueError, r"'x' and the weights of 'h' to be numbers .got NaN", {"x": torch.full((12, 5), torch.nan)}),
        (ValueError, "'edge_weight' to be finite", {"edge_weight": torch.full((60,), torch.nan)}),
        (ValueError, r"'batch' to have shape \[12\].*\[11\]", {"batch": torch.zeros(11, dtype=torch.long)}),
        (ValueError, "inside one graph", {"batch": torch.arange(12)}),
        (TypeError, "unexpected keyword argument 'edge_attr'", {"edge_attr": torch.ones(60)}),
    ],
)
def test_bad_input(error, message, arguments):
    data = random_graph(dtype=torch.float32)
    with pytest.raises(error, match=message):
        VIGMMPool(5)(**{"x": data.x, "edge_index": data.edge_index} | arguments)


@pytest.mark.parametrize("cluster", [None, torch.tensor([0, 0, 1, 1])])
def test_a_batch_of_fractions_is_refused(cluster):
    x, edge_index = torch.randn(4, 2), torch.tensor([[0, 2], [1, 3]])
    with pytest.raises(TypeError, match=r"'batch' to hold integers .got torch.float32"):
        VIGMMPool(2, 0.5)(x, edge_index, batch=torch.tensor([0.0, 0.4, 1.9, 1.0]), cluster=cluster)
    out = VIGMMPool(2, 0.5)(x, edge_index, batch=torch.tensor([0, 0, 1, 1], dtype=torch.int32), cluster=cluster)
    assert out.batch.tolist() == [0, 1]
