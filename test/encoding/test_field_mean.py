"""The weighted mean over a field: kernel, reference and derivatives."""

import pytest
import torch

from torch_gic import Fields, receptive_fields
from torch_gic.encoding import field_mean
from torch_gic.encoding.field_mean import reference, reference_backward

EDGES = torch.tensor([[0, 1, 1, 2, 3, 0], [1, 0, 2, 1, 2, 2]])


def operands(nodes=9, entries=40, channels=5, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(nodes, channels, generator=generator, dtype=dtype)
    weight = torch.rand(entries, generator=generator, dtype=dtype)
    weight[:: max(entries // 4, 1)] = 0  # not in the field
    member = torch.randint(max(nodes, 1), (entries,), generator=generator)
    cuts = torch.randint(entries + 1, (max(nodes - 1, 0),), generator=generator).sort().values
    return x, weight, member, torch.cat([torch.tensor([0]), cuts, torch.tensor([entries])])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("nodes", "entries", "channels"), [(1, 0, 3), (1, 1, 1), (9, 40, 5), (700, 5000, 33)])
def test_kernel_equals_the_reference(nodes, entries, channels, dtype):
    inputs = operands(nodes, entries, channels, dtype)
    (mean, mass), (expected, expected_mass) = torch.ops.torch_gic.field_mean(*inputs), reference(*inputs)
    torch.testing.assert_close(mean, expected)
    torch.testing.assert_close(mass, expected_mass)
    grad = torch.randn_like(mean)
    found = torch.ops.torch_gic.field_mean_backward(grad, mean, mass, *inputs)
    for ours, theirs in zip(found, reference_backward(grad, mean, mass, *inputs), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_is_the_weighted_mean_over_the_first_scale():
    weight = torch.tensor([0.5, 1.0, 2.0, 1.0, 3.0, 0.25])
    fields = receptive_fields(EDGES, weight, num_nodes=5, num_scales=2, add_self_loops=False)
    dense = torch.zeros(5, 5).index_put((fields.index[1], fields.index[0]), fields.weight[:, 0])
    x = torch.randn(5, 3)
    expected = torch.stack([row @ x / row.sum() if row.sum() > 0 else torch.zeros(3) for row in dense])
    assert (expected == 0).all(1).any()  # a node that no edge enters
    torch.testing.assert_close(field_mean(x, fields), expected)


def test_nodes_in_no_field_do_not_matter_whatever_their_features_are():
    fields = receptive_fields(EDGES, num_nodes=4)
    x = torch.randn(4, 3)
    larger = Fields(fields.index, fields.weight, fields.rowptr, 8)
    torch.testing.assert_close(field_mean(torch.cat([x, torch.full_like(x, torch.nan)]), larger), field_mean(x, fields))


@pytest.mark.parametrize("check", [torch.autograd.gradcheck, torch.autograd.gradgradcheck])
def test_derivatives_by_features_and_edge_weights(check):
    def mean(x, weight):
        return field_mean(x, receptive_fields(EDGES, weight, num_nodes=5))

    x, weight = torch.randn(5, 2, dtype=torch.float64), torch.rand(6, dtype=torch.float64) + 0.5
    assert check(mean, (x.requires_grad_(), weight.requires_grad_()))


def test_forward_mode():
    fields = receptive_fields(EDGES, num_nodes=5)
    x, step = torch.randn(5, 2), torch.randn(5, 2)
    _, tangent = torch.func.jvp(lambda x: field_mean(x, fields), (x,), (step,))
    torch.testing.assert_close(tangent, field_mean(step, fields))  # it is linear


def test_operation():
    x, weight, member, rowptr = operands()
    torch.library.opcheck(torch.ops.torch_gic.field_mean, (x.requires_grad_(), weight.requires_grad_(), member, rowptr))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_bits_do_not_depend_on_the_number_of_threads(threads):
    inputs = operands(700, 5000, 8, torch.float32)
    before = torch.get_num_threads()
    try:
        mean, mass = torch.ops.torch_gic.field_mean(*inputs)
        grad = torch.ones_like(mean)
        found = torch.ops.torch_gic.field_mean_backward(grad, mean, mass, *inputs)
        torch.set_num_threads(threads)
        again = torch.ops.torch_gic.field_mean(*inputs)[0]
        assert torch.equal(mean, again)
        for one, other in zip(found, torch.ops.torch_gic.field_mean_backward(grad, mean, mass, *inputs), strict=True):
            assert torch.equal(one, other)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("backend", ["kernel", "reference"])
@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (1, torch.ones(1), "'weight' to have s"),
        (2, torch.tensor([0, 1, 9]), r"'member' to lie in \[0, 2\] .got 9"),
        (3, torch.tensor([0, 2**31, 3]), r"'rowptr' to be sorted .got"),  # which read the memory of others
        (3, torch.tensor([0, 2, 1, 3]), r"'rowptr' to be sorted .got"),
        (3, torch.tensor([1, 3]), "'rowptr' to begin with 0"),
        (3, torch.tensor([0, 2]), "'rowptr' to .*end with 3"),
    ],
)
def test_malformed_fields_are_refused(backend, place, value, message):
    inputs = [torch.ones(3, 2), torch.ones(3), torch.tensor([0, 1, 2]), torch.tensor([0, 2, 3])]
    kernel = backend == "kernel"
    forward = torch.ops.torch_gic.field_mean if kernel else reference
    backward = torch.ops.torch_gic.field_mean_backward if kernel else reference_backward
    mean, mass = forward(*inputs)
    inputs[place] = value
    nodes = inputs[3].numel() - 1
    for call in (
        forward,
        lambda *given: backward(mean.new_ones(nodes, 2), mean.new_ones(nodes, 2), mass.new_ones(nodes), *given),
    ):
        with pytest.raises((RuntimeError, ValueError), match=message):
            call(*inputs)
