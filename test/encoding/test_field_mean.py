import pytest
import torch

from torch_gic import receptive_fields
from torch_gic.encoding import field_mean

EDGES = torch.tensor([[0, 1, 1, 2, 3, 0], [1, 0, 2, 1, 2, 2]])


def test_is_the_weighted_mean_over_the_first_scale():
    weight = torch.tensor([0.5, 1.0, 2.0, 1.0, 3.0, 0.25])
    fields = receptive_fields(EDGES, weight, num_nodes=5, num_scales=2, add_self_loops=False)
    dense = torch.zeros(5, 5).index_put((fields.index[1], fields.index[0]), fields.weight[:, 0])
    x = torch.randn(5, 3)
    expected = torch.stack([row @ x / row.sum() if row.sum() > 0 else torch.zeros(3) for row in dense])
    assert (expected == 0).all(1).any()  # a node that no edge enters
    torch.testing.assert_close(field_mean(x, fields), expected)


def test_mean_of_a_constant_is_that_constant():
    torch.testing.assert_close(field_mean(torch.full((5, 2), 7.0), receptive_fields(EDGES, num_nodes=5)), torch.full((5, 2), 7.0))


@pytest.mark.parametrize("check", [torch.autograd.gradcheck, torch.autograd.gradgradcheck])
def test_gradients_to_features_and_edge_weights(check):
    def mean(x, weight):
        return field_mean(x, receptive_fields(EDGES, weight, num_nodes=5))

    x, weight = torch.randn(5, 2, dtype=torch.float64), torch.rand(6, dtype=torch.float64) + 0.5
    assert check(mean, (x.requires_grad_(), weight.requires_grad_()))
