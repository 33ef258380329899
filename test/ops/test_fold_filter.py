import pytest
import torch
from torch.library import opcheck

from torch_gic._library import load_kernels
from torch_gic.ops.fold_filter import fold_filter, reference, reference_backward

needs_kernel = pytest.mark.skipif(load_kernels().active == "reference", reason="no compiled kernels here")
forward, backward = torch.ops.torch_gic.fold_filter, torch.ops.torch_gic.fold_filter_backward


def operands(filters=4, scales=2, components=3, d=5, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(filters, scales * components * 2 * d, generator=generator, dtype=dtype)
    mu = torch.randn(scales, components, d, generator=generator, dtype=dtype)
    sigma = 0.5 + torch.rand(scales, components, d, generator=generator, dtype=dtype)
    return weight, mu, sigma


def test_by_hand():
    """One filter, component and channel: w_mu = 3, w_sigma = 5, mu = 2, sigma = 0.5."""
    weight, mu, sigma = torch.tensor([[3.0, 5.0]]), torch.tensor([[[2.0]]]), torch.tensor([[[0.5]]])
    to_moments, to_mass = fold_filter(weight, mu, sigma)
    assert to_moments.tolist() == [[3 / 0.25 - 2 * 2 * 5 / 0.125, 5 / 0.125]]
    assert to_mass.tolist() == [[4 * 5 / 0.125 - 2 * 3 / 0.25, -5 / 0.5]]


@needs_kernel
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize("sizes", [(4, 2, 3, 5), (1, 1, 1, 1), (33, 3, 7, 16), (64, 1, 1, 67), (0, 2, 2, 3), (3, 2, 2, 0)])
def test_kernel_equals_the_reference(sizes, dtype, tolerance):
    inputs = operands(*sizes, dtype=dtype)
    outputs = forward(*inputs)
    gradients = [torch.randn_like(output) for output in outputs]
    pairs = [*zip(outputs, reference(*inputs), strict=True)]
    pairs += zip(backward(*gradients, *inputs), reference_backward(*gradients, *inputs), strict=True)
    for kernel, plain in pairs:
        largest = float(plain.abs().amax()) if plain.numel() else 1.0
        torch.testing.assert_close(kernel, plain, rtol=0, atol=tolerance * max(1.0, largest))


@pytest.mark.parametrize("function", [fold_filter, "reference"])
def test_gradients(function):
    inputs = [value.requires_grad_() for value in operands(2, 2, 2, 3)]
    if function == "reference":
        outputs = reference(*inputs)
        gradients = [torch.randn_like(output) for output in outputs]
        autograd = torch.autograd.grad(outputs, inputs, gradients)
        for ours, theirs in zip(reference_backward(*gradients, *inputs), autograd, strict=True):
            torch.testing.assert_close(ours, theirs)
    else:
        assert torch.autograd.gradcheck(function, inputs)


def test_opcheck():
    inputs = [value.requires_grad_() for value in operands()]
    opcheck(forward, inputs)
    opcheck(backward, [*map(torch.randn_like, forward(*inputs)), *(value.detach() for value in inputs)])


@needs_kernel
def test_threads_and_layout_change_nothing():
    weight, mu, sigma = operands(64, 3, 5, 33, torch.float32)
    results = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        for given in (weight, weight.t().contiguous().t()):
            outputs = forward(given, mu, sigma)
            results.append([*outputs, *backward(*outputs, given, mu, sigma)])
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


@needs_kernel
def test_wrong_operands_are_named():
    weight, mu, sigma = operands()
    with pytest.raises(RuntimeError, match="Expected 'weight' to have size 60 in dimension 1"):
        forward(weight[:, :-1], mu, sigma)
    with pytest.raises(RuntimeError, match="Expected 'sigma' to have size 5 in dimension 2"):
        forward(weight, mu, sigma[:, :, :-1])
    with pytest.raises(RuntimeError, match="Expected 'mu' to hold float64 values"):
        forward(weight, mu.float(), sigma)
