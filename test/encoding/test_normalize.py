"""The normalisation of channels: kernel, reference and derivatives."""

import pytest
import torch

from torch_gic.encoding import bounded_norm
from torch_gic.encoding.normalize import reference, reference_backward


def features(rows=40, channels=5, dtype=torch.float64):
    x = torch.randn(rows, channels, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return (x * torch.tensor([1.0, 1e-3, 1e3, 1.0, 0.0])[:channels] + torch.arange(5.0)[:channels]).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("rows", "channels"), [(1, 1), (2, 3), (40, 5), (33, 70), (5000, 17)])
def test_kernel_equals_the_reference(rows, channels, dtype):
    x = torch.randn(rows, channels, generator=torch.Generator().manual_seed(0), dtype=dtype) * 3 + 2
    grad = torch.randn(rows, channels, generator=torch.Generator().manual_seed(1), dtype=dtype)
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {}
    found, expected = torch.ops.torch_gic.bounded_norm(x, 5.0), reference(x, 5.0)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, **tolerance)
    if rows > 1:
        statistics = expected[1:]
        backward = torch.ops.torch_gic.bounded_norm_backward(grad, x, *statistics, 5.0)
        torch.testing.assert_close(backward, reference_backward(grad, x, *statistics, 5.0), **tolerance)


@pytest.mark.parametrize("bound", [1.0, 5.0])
def test_derivatives(bound):
    x = features(12).requires_grad_()
    scale = torch.tensor([1.0, 1e-3, 1e3, 1.0, 1.0], dtype=torch.float64)  # for equal steps of finite differences

    def normalised(y):
        return bounded_norm(y * scale, bound)[0][:, :4]

    y = (x.detach() / scale).requires_grad_()
    assert torch.autograd.gradcheck(normalised, y)
    assert torch.autograd.gradgradcheck(normalised, y)
    by_func = torch.func.grad(lambda y: normalised(y).pow(3).sum())(y.detach())
    (by_autograd,) = torch.autograd.grad(normalised(y).pow(3).sum(), y)
    torch.testing.assert_close(by_func, by_autograd)
    _, tangent = torch.func.jvp(normalised, (y.detach(),), (torch.ones_like(y),))
    torch.testing.assert_close(tangent, torch.zeros_like(tangent), rtol=0, atol=1e-4)  # a shift of all rows changes little


def test_operation():
    x = (features(7) + torch.randn(7, 5)).requires_grad_()
    torch.library.opcheck(torch.ops.torch_gic.bounded_norm, (x, 5.0))
    out, mean, var = bounded_norm(x, 5.0)
    assert out.requires_grad
    assert not mean.requires_grad
    assert not var.requires_grad
    strided = torch.ops.torch_gic.bounded_norm(x.detach().t().contiguous().t(), 5.0)
    torch.testing.assert_close(strided[0], out.detach())


def test_constant_channels_have_no_gradient():
    x = torch.full((6, 3), 7.0, requires_grad=True)
    bounded_norm(x, 5.0)[0].sum().backward()
    assert x.grad.abs().max() < 1e-3


def test_threads_change_no_bit():
    x, grad = torch.randn(3000, 70), torch.randn(3000, 70)
    found, threads = [], torch.get_num_threads()
    try:
        for count in (1, 2, 5):
            torch.set_num_threads(count)
            out = torch.ops.torch_gic.bounded_norm(x, 5.0)
            found.append([*out, torch.ops.torch_gic.bounded_norm_backward(grad, x, *out[1:], 5.0)])
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))
